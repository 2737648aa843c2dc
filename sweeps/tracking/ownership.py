"""Ownership: tell whether an MLflow experiment is of mixsweep or of another program."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from sweeps.tracking.links import VIEW_TAG
from sweeps.tracking.logged_run import LoggedRun, logged_run

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment as MlflowExperiment

PAGE = 1000
"""Largest number of runs or experiments that one call to MLflow returns."""


def is_foreign(
    client: "MlflowClient", experiment: "MlflowExperiment", runs: Iterable[LoggedRun]
) -> bool:
    """Return True if an experiment has runs, and neither a run of mixsweep nor its tags.

    Args:
        client: Client of the MLflow that has the experiment.
        experiment: The experiment.
        runs: Its runs outside the trash; not read if the tags are those of mixsweep.
    """
    if VIEW_TAG in experiment.tags:
        return False
    # Experiments of early versions lack the tag; their runs may be deleted.
    has_runs = False
    for run in chain(runs, logged_runs(client, experiment.experiment_id, deleted=True)):
        has_runs = True
        if run.is_of(None):
            return False
    return has_runs


def logged_runs(
    client: "MlflowClient", experiment_id: str, *, deleted: bool = False
) -> Iterator[LoggedRun]:
    """Yield the runs of an experiment, those in the trash or all others, the oldest first."""
    from mlflow.entities import ViewType

    token = None
    while True:
        page = client.search_runs(
            [experiment_id],
            run_view_type=ViewType.DELETED_ONLY if deleted else ViewType.ACTIVE_ONLY,
            max_results=PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from map(logged_run, page)
        token = page.token
        if not token:
            return
