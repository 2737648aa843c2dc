"""stop: ask the driver of a study to stop, on this or another machine."""

import click

from mixsweep.cli.request import DONE, Request, on_study
from sweeps.leasing.lease import Lease, read_progress
from sweeps.leasing.stops import ask_to_stop


@click.command()
@on_study
@click.option(
    "--now",
    is_flag=True,
    help="Do not finish the running runs; they continue later from their last stored stage.",
)
def stop(request: Request, now: bool) -> int:
    """Stop a study: no new run starts, the running ones finish, and the report is written.

    The study may be running on any machine that uses the store. To resume it, repeat the command
    `mixsweep run`.
    """
    name, store = request.study.name, request.store
    holder = Lease.current(store, name)
    if holder is None:
        click.echo(f"{name}: not running, nothing to stop", err=True)
        return DONE
    ask_to_stop(store, name, holder, "now" if now else "finish")
    progress = read_progress(store, name)
    running = 0 if progress is None else len(progress.running)
    what = f"stops and interrupts {running} runs" if now else f"stops after {running} running runs"
    click.echo(f"{name}: {holder} {what}; next  {request.spell('status')}", err=True)
    return DONE
