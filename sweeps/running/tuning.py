"""Tuning: trains the runs of a launch as Ray Tune trials, on the connected Ray cluster."""

import itertools
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ray import tune
from ray.exceptions import OutOfMemoryError
from ray.tune.result import DONE
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher
from ray.tune.trainable import wrap_function

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.leasing.lease import Claims, Lease
from sweeps.machine.signals import arrivals
from sweeps.running.assignment import Assignment
from sweeps.running.head import is_elsewhere
from sweeps.running.monitor import Monitor
from sweeps.running.placement import Slots
from sweeps.running.ray_cluster import dead_nodes
from sweeps.running.retries import Retries
from sweeps.running.run_queue import RunQueue
from sweeps.running.storing import WRITING
from sweeps.running.trainable import REPORTS_PER_SECOND, train_run
from sweeps.running.watch import OnlyHeldError, Sharing, Watch
from sweeps.searching.sources import RunSource
from sweeps.state.stages import PlannedRun, spare_bytes
from sweeps.study.study import Run
from sweeps.tracking.tracker import Tracker

_NO_LIMIT = 10**9
_LEAST = 0.001
"""Part of a resource that names a kind of GPU, as Ray itself reserves for `accelerator_type`."""

# Tune warns that it cannot read its own result files, which are turned off.
logging.getLogger("ray.tune.analysis.experiment_analysis").setLevel(logging.ERROR)
# Tune prints a traceback for every failure; `Retries` reports it in one line.
for _logger in ("ray.tune.execution.tune_controller", "ray.tune.tune"):
    logging.getLogger(_logger).setLevel(logging.CRITICAL)


class LiveTrials(FIFOScheduler):  # type: ignore[misc]
    """Scheduler for Ray Tune that starts trials in the order in which they were added.

    Tune's default loops over all past trials at each event, and starts them in a random order.
    """

    def __init__(self, on_error: Callable[[Any], None] = lambda _: None) -> None:
        super().__init__()
        self._on_error = on_error
        self._places: dict[str, int] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        self._places.setdefault(trial.trial_id, len(self._places))

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        self._on_error(trial)

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        live = tune_controller.get_live_trials()
        pending = (trial for trial in live if trial.status == trial.PENDING)
        return min(pending, key=lambda trial: self._places[trial.trial_id], default=None)


class RunSearcher(Searcher):  # type: ignore[misc]
    """Source of trials for Ray Tune: the runs of a queue, each as soon as it can start.

    Tune calls `suggest` several times a second. The searcher saves nothing: finished work is
    recorded in the store alone, and a new launch resumes the study.
    """

    def __init__(
        self,
        queue: RunQueue,
        parameters: Callable[[PlannedRun], dict[str, Any]],
        is_again: Callable[[str], bool] = lambda _: False,
        limit: Callable[[], float] = lambda: math.inf,
    ) -> None:
        super().__init__()
        self._queue = queue
        self._parameters = parameters
        self._is_again = is_again
        self._limit = limit
        self._runs: dict[str, str] = {}
        """Key of the run of each live trial."""
        self.num_held = 0
        """Number of trials that occupy a faulty device."""
        self.is_idle = False
        """True if no run has a trial and no run is ready to start."""

    def restart(self, failed: Run | None) -> None:
        """Put all live runs but one, which has failed, back into the queue; Tune starts again."""
        self._runs.clear()
        self.num_held = 0
        for key in tuple(self._queue.live):
            if failed is not None and key == failed.key:
                self._queue.end(key, failed=True)
            else:
                self._queue.again(key)

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the next configuration, None if no run is ready, FINISHED if none is left."""
        if len(self._runs) >= self._limit():
            return None
        if (planned := self._queue.next()) is not None:
            self._runs[trial_id] = planned.run.key
            return self._parameters(planned)
        if self._queue.is_waiting:  # for another driver
            return None
        self.is_idle = not self._runs
        finished: str = Searcher.FINISHED
        return None if self._runs else finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        if (key := self._runs.get(trial_id)) is None:
            return
        self._queue.read(key, result)
        if result.get("failure/kind") == "held":
            self.num_held += 1
            self._queue.again(self._runs.pop(trial_id))

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        if (key := self._runs.pop(trial_id, None)) is None:
            return
        last = result or {}
        failure = last.get("failure/kind")
        if failure == "declined" or (error and self._is_again(trial_id)):
            self._queue.again(key)
            return
        is_whole = bool(last.get(DONE)) and not error and not failure
        self._queue.read(key, {"lost": last.get("lost")}, is_whole=is_whole)
        self._queue.end(key, failed=error or bool(failure))

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: finished work is in the store."""

    def restore(self, checkpoint_path: str) -> None:
        raise RuntimeError(
            f"a study must be resumed by launching it again, got ({checkpoint_path=})."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}


def tune_runs(  # noqa: PLR0913  independent objects that the caller opens
    source: RunSource,
    first: Sequence[PlannedRun],
    store: Store,
    tracker: Tracker,
    lease: Lease,
    slots: Slots,
    folder: Path,
    *,
    keep_final_states: bool,
) -> Mapping[str, Failure]:
    """Train the runs of a source with Ray Tune; return the failures by run key."""
    # Number of trials that may wait for a node to join; Tune's default is one.
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(slots.count)
    monitor = Monitor(source=source, store=store, tracker=tracker, lease=lease, slots=slots.count)
    retries = Retries(limit=slots.limit or _NO_LIMIT, on_gpu=slots.on_gpu)
    claims = Claims(store=store, study=source.study.name, token=lease.token)
    queue = RunQueue(source, monitor.join, first, claims=claims)
    devices = max(1, round(slots.count * (slots.gpus_per_run or 1)))
    watch = Watch(monitor, queue, retries, dead_nodes, devices=devices)
    sharing = Sharing(slots, monitor.note) if is_elsewhere() else None

    def parameters(planned: PlannedRun) -> dict[str, Any]:
        assignment = Assignment.of(
            planned,
            store,
            keep_final_state=keep_final_states,
            writing=None if is_elsewhere() else str(folder / WRITING),
            spare_bytes=spare_bytes(len(source.study.runs())),
            on_gpu=slots.on_gpu,
            gpus=slots.gpus_per_run,
            report_every=max(1.0, slots.count / REPORTS_PER_SECOND),
        )
        return {
            "run_key": planned.run.key,
            "assignment": assignment,
            "study": source.study.name,
            "driver": lease.holder,
            "avoided": retries.avoided(planned.run),
            "sick": frozenset(retries.sick),
            "is_last": queue.is_empty,
        }

    searcher = RunSearcher(
        queue,
        parameters,
        watch.is_tried_again,
        lambda: min(retries.limit, sharing.limit) if sharing else retries.limit,
    )
    watch.is_all_held = lambda: searcher.num_held >= (1 if searcher.is_idle else slots.count)
    with (
        arrivals() as watch.is_interrupted,
        suppress(OnlyHeldError),
        closing(claims),
        closing(monitor),
    ):
        callbacks = [watch, sharing] if sharing else [watch]
        trainable = _trainable(source.study.name, _resources(slots))
        for number in itertools.count():
            name = f"{source.study.name}-{lease.token}-{number}"
            try:
                _fit(
                    trainable, searcher, callbacks, watch.judge, slots.limit, folder / "tune" / name
                )
                break
            except RuntimeError as error:
                if not isinstance(error.__cause__, OutOfMemoryError):
                    raise
                # Tune cannot go on after Ray has killed a process while it trained.
                searcher.restart(watch.judge_killed(str(error.__cause__)))
    if retries.sick:
        names = ", ".join(retries.sick.values())
        monitor.note(f"devices that got no more runs: {names}; check them before the next launch")
    return monitor.failures


def _fit(  # noqa: PLR0913  independent objects
    trainable: Any,
    searcher: RunSearcher,
    callbacks: list[tune.Callback],
    on_error: Callable[[Any], None],
    limit: int | None,
    folder: Path,
) -> None:
    tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            scheduler=LiveTrials(on_error),
            num_samples=-1,
            max_concurrent_trials=limit,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: trial.trial_id,
        ),
        run_config=tune.RunConfig(
            name=folder.name, storage_path=str(folder.parent), verbose=0, callbacks=callbacks
        ),
    ).fit()


def _resources(slots: Slots) -> tune.PlacementGroupFactory:
    reserved = {"CPU": 1, "GPU": slots.gpus_per_run}
    label, is_label, value = (slots.kind or "").partition("=")
    if is_label:
        return tune.PlacementGroupFactory([reserved], bundle_label_selector=[{label: value}])
    if slots.kind:
        reserved[slots.kind] = _LEAST
    return tune.PlacementGroupFactory([reserved])


def _trainable(study: str, resources: tune.PlacementGroupFactory) -> Any:
    """Return `train_run` as a class named after a study, as `ray list actors` shows it."""
    name = f"mixsweep {study}"
    # Ray shows the qualified name of a class; `tune.with_resources` would give it its own.
    request = classmethod(lambda cls, config: resources)  # noqa: ARG005
    return type(name, (wrap_function(train_run, name),), {"default_resource_request": request})
