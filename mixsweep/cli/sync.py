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
    return DONE
