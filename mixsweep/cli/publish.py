"""publish: write one static site with all studies of a home."""

from pathlib import Path

import click

from mixsweep.cli.options import LocalPath, home_option
from mixsweep.request import DONE, RefusedError
from sweeps.machine.home import Home


@click.command()
@home_option
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    required=True,
    help="Folder to write the site to.",
)
def publish(home: Path, out: Path) -> int:
    """Write one static site with the reports of all studies of a home.

    The site is a folder: open its index.html in a browser, or copy the folder to any web server.
    It contains the reports, and nothing else of the home.
    """
    from reports.pages.html_pages import write_site

    reports = Home(folder=home).folder / "reports"
    entries = write_site(reports, out) if reports.is_dir() else ()
    if not entries:
        raise RefusedError(f"{reports} contains no report; `mixsweep run STUDY` writes one")
    reported = "1 report" if len(entries) == 1 else f"{len(entries)} reports"
    click.echo(f"{reported}  {out / 'index.html'}")
    return DONE
