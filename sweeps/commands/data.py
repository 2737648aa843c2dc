"""Data commands: say which data sets are here, and fetch them."""

import click

from mixup_core.problem import DataError, all_data_needs
from sweeps.commands.request import DONE, loading_option
from sweeps.running.console import still


@click.group()
def data() -> None:
    """Say which data sets are here, and fetch them."""


@data.command("list")
@loading_option
def list_data() -> int:
    """List the data sets and where they are."""
    for needs in all_data_needs().values():
        for found in needs.sets():
            here = found.place if found.is_present else f"missing; mixsweep data fetch {found.name}"
            click.echo(f"{found.name:<14} {here}")
    return DONE


@data.command("fetch")
@click.argument("name")
@loading_option
def fetch_data(name: str) -> int:
    """Bring a data set to this machine; one that is already there is left alone."""  # noqa: DOC501
    known = {found.name: needs for needs in all_data_needs().values() for found in needs.sets()}
    if name not in known:
        raise DataError(f"{name}: not a data set to fetch; these are: {', '.join(known)}.")
    with still(f"fetching {name}"):
        source = known[name].fetch(name)
    click.echo(f"{name}: {source}")
    return DONE
