"""stop: ask the driver of a study to stop, on this or another machine."""

import re
from pathlib import Path

import click

from mixsweep.cli.options import StudyCommand, home_option, store_option
from mixsweep.request import DONE
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease, ask_to_stop, read_progress
from sweeps.machine.command_line import program
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study


@click.command(cls=StudyCommand)
@click.argument("study")
@home_option
@store_option
@click.option(
    "--now",
    is_flag=True,
    help="Do not finish the running runs; they continue later after their last stored epoch.",
)
def stop(study: str, home: Path, store_url: str | None, now: bool) -> int:
    """Stop a study: no new run starts, the running ones finish, and the report is written.

    The study may be running on any machine that uses the store. To resume it, repeat the command
    `mixsweep run`.
    """
    place = Home(folder=home, store_url=store_url)
    store = Store(place.store)
    # A study file need not be readable here: its name alone is known to the driver.
    is_name = re.fullmatch(r"[a-z0-9-]{1,100}", study) is not None
    name = study if is_name else load_study(study, (), place.store, reads_only=True).name
    holder = Lease.current(store, name)
    if holder is None:
        click.echo(f"{name}: not running, nothing to stop", err=True)
        return DONE
    ask_to_stop(store, name, holder, "now" if now else "finish")
    progress = read_progress(store, name)
    running = 0 if progress is None else len(progress.running)
    what = f"stops and interrupts {running} runs" if now else f"stops after {running} running runs"
    click.echo(
        f"{name}: {holder} {what}; next  {program()} status {study} {place.options}", err=True
    )
    return DONE
