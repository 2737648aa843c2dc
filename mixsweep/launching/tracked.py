"""Tracked: opens and settles the tracker (the object that writes results to MLflow) of a study."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from mixsweep.request import Request
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store, identity_of, known_identity
from sweeps.leasing.lease import Lease
from sweeps.machine.processes import user
from sweeps.machine.signals import hear, leave_saying_so, owns_process
from sweeps.machine.terminal_text import still
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.running.head import HeadLostError
from sweeps.state.ledger import launches
from sweeps.study.study import Study

if TYPE_CHECKING:
    from sweeps.tracking.tracker import Tracker


def bringing_up_to_date(tracker: "Tracker") -> AbstractContextManager[None]:
    """Show, during a `with` block that sends results to MLflow, how many are left to send.

    Nothing is shown if the block ends within a second.
    """
    return still(
        "bringing MLflow up to date",
        left=lambda: f"{tracker.num_waiting} results left; Ctrl-C leaves them to `mixsweep sync`",
    )


@contextmanager
def settled_if_cut(tracker: "Tracker", store: Store) -> Iterator[None]:
    """Mark unfinished runs in MLflow as ended if the `with` block is interrupted, or Ray has died.

    The same is done if this process is ended by force. A second interrupt ends it without waiting
    for MLflow.
    """
    with cleaned_by_force(partial(tracker.settle, store)):
        try:
            yield
        except (KeyboardInterrupt, HeadLostError):
            if owns_process():
                hear(leave_saying_so)
            tracker.settle(store)
            raise


def log_network(tracker: "Tracker", study: Study, store: Store) -> None:
    """Write the network of the winner of a search to MLflow, if its weights are stored."""
    run = study.winning_run()
    if run is None or study.problem.network is None:
        return
    stage = store.read(stage_keys(run.config)[-1])
    state = None if stage is None else store.states.read(stage)
    if state is not None:
        tracker.log_model(run, state)


def open_tracker(request: Request, lease: Lease, *, loads_mlflow: bool = True) -> "Tracker":
    """Return a tracker, the object that writes the results of a study to MLflow."""
    from reports.numbers.code_origin import origin_tags
    from reports.numbers.runs import summariser
    from sweeps.tracking.connection import has_settings, load
    from sweeps.tracking.experiment import HOME
    from sweeps.tracking.study_log import StudyLog
    from sweeps.tracking.tracker import Tracker

    if loads_mlflow or has_settings():
        load()
    return Tracker(
        StudyLog(
            request.grown,
            request.home.tracking_uri,
            summariser=summariser,
            artifact_location=request.home.artifact_location,
            tags={
                **origin_tags(),
                "command": request.command,
                "mlflow.source.name": f"mixsweep run {request.reference}",
                "mlflow.source.type": "LOCAL",
                "mlflow.user": user(),
            },
            data_checksums=request.data_checksums(),
            # Earlier versions marked runs in a home's own database by the store if it was named.
            owners=(HOME, known_identity(request.store) or HOME)
            if request.home.is_self_contained
            else (identity_of(request.store),),
            others=_others(request),
        ),
        may_write=lease.is_held,
    )


def _others(request: Request) -> frozenset[str]:
    """Return the other settings of the study that were launched, and the keys of their own runs."""
    study = request.grown
    others = [
        launch
        for launch in launches(request.store, study.name)
        if launch.settings != study.settings
    ]
    keys = {text.partition(" ")[0] for launch in others for text in launch.runs}
    keys -= {run.key for run in study.runs()}
    return frozenset({launch.settings for launch in others} | keys)
