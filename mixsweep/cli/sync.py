"""sync: copy the stored results of a study to MLflow again, for example after a server's outage."""

import math

import click

from mixsweep.cli.options import StudyCommand, on_study
from mixsweep.launching.tracked import (
    bringing_up_to_date,
    log_network,
    open_tracker,
    settled_if_cut,
)
from mixsweep.request import DONE, RefusedError, Request
from sweeps.leasing.lease import Lease
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.state.ledger import launches

_MOST_LEFT = 3
"""Number of other studies that `sync` names."""


@click.command(cls=StudyCommand)
@on_study(databases=True)
def sync(request: Request) -> int:
    """Delete the runs of a study in MLflow, and write its stored results there again."""
    request.require_stored()
    request.require_databases()
    with (
        Lease.acquire(request.store, request.study.name, request.command) as lease,
        cleaned_by_force(lease.release),
    ):
        results = request.results()
        tracker = open_tracker(request, lease)
        with settled_if_cut(tracker, request.store):
            tracker.start(results, anew=True)
            log_network(tracker, request.grown, request.store)
            with bringing_up_to_date(tracker):
                tracker.close(results, timeout=math.inf)
    if tracker.trouble is not None:
        raise RefusedError(
            f"tracking is incomplete: {tracker.trouble}; when the cause is fixed, run the same "
            "command again"
        )
    click.echo(
        f"{request.study.name}: {sum(r.outcome == 'complete' for r in results)} finished "
        f"runs of {len(results)} are in MLflow"
    )
    _say_left(request)
    return DONE


def _say_left(request: Request) -> None:
    """Print the other studies and settings of the store, which this command has not copied."""
    own = request.study
    left = [
        launch
        for launch in launches(request.store)
        if (launch.study, launch.settings) != (own.name, own.settings)
    ]
    for launch in left[:_MOST_LEFT]:
        click.echo(f"left      {launch.study}: {launch.command}", err=True)
    if (more := len(left) - _MOST_LEFT) > 0:
        click.echo(f"left      {more} more; `mixsweep status` lists them", err=True)
    if left:
        click.echo("these are copied by `mixsweep sync` with their STUDY and settings", err=True)
