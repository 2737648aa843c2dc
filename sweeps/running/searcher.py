"""RunSearcher: gives the runs of a queue to Ray Tune, each as a trial."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from ray.tune.result import DONE
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from sweeps.running.run_queue import RunQueue
from sweeps.state.stages import PlannedRun
from sweeps.study.study import Run


class LiveTrials(FIFOScheduler):  # type: ignore[misc]
    """Scheduler for Ray Tune that starts trials in the order in which they were added.

    It replaces Tune's default scheduler. The default loops over all past trials at each event, and
    keeps the live trials in a set whose order changes between launches.
    """

    def __init__(self, on_error: Callable[[Any], None] = lambda _: None) -> None:
        super().__init__()
        self._on_error = on_error
        self._places: dict[str, int] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        del tune_controller
        self._places.setdefault(trial.trial_id, len(self._places))

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        del tune_controller
        self._on_error(trial)

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        live = tune_controller.get_live_trials()
        pending = (trial for trial in live if trial.status == trial.PENDING)
        return min(pending, key=lambda trial: self._places[trial.trial_id], default=None)


class RunSearcher(Searcher):  # type: ignore[misc]
    """Source of trials for Ray Tune: the runs of a study, each as soon as it can start.

    Tune calls `suggest` several times a second. The searcher saves nothing: finished work is
    recorded in the store alone, and a new launch resumes the study.
    """

    def __init__(
        self,
        queue: RunQueue,
        parameters: Callable[[PlannedRun], dict[str, Any]],
        is_stopped: Callable[[], bool] = lambda: False,
        is_again: Callable[[str], bool] = lambda _: False,
        limit: Callable[[], float] = lambda: math.inf,
    ) -> None:
        super().__init__()
        self._queue = queue
        self._parameters = parameters
        self._is_stopped = is_stopped
        self._is_again = is_again
        self._limit = limit
        self._live: dict[str, Run] = {}
        self.num_held = 0
        """Number of trials that occupy a faulty device."""
        self.is_idle = False
        """True if no run has a trial and no run is ready to start."""

    @property
    def num_live(self) -> int:
        return len(self._live)

    def abandon(self) -> list[Run]:
        """Forget all trials; return the runs of live ones, in the order in which they started.

        Called when Tune must be started again. The returned runs go back into the queue (`resume`).
        """
        live = list(self._live.values())
        self._live.clear()
        self.num_held = 0
        return live

    def resume(self, runs: Iterable[Run], failed: Run | None) -> None:
        """Put abandoned runs back into the queue, except for the one that has failed."""
        for run in runs:
            if run is failed:
                self._queue.end(run.key, failed=True)
            else:
                self._queue.again(run.key)

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the Tune configuration of the next run; Tune calls this when it has a free slot.

        Returns:
            None if no run is ready yet; `Searcher.FINISHED` if no run is left.
        """
        if len(self._live) >= self._limit():
            return None
        if not self._is_stopped():
            if (planned := self._queue.next()) is not None:
                self._live[trial_id] = planned.run
                return self._parameters(planned)
            if self._queue.is_waiting:  # for another driver
                return None
        self.is_idle = not self._live
        finished: str = Searcher.FINISHED
        return None if self._live else finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Read a report of a run; release the runs that wait for a stage which it has stored.

        Tune calls this.
        """
        if trial_id in self._live:
            self._queue.lose(self._live[trial_id].key, result.get("lost") or ())
        rows = result.get("rows")
        if rows and trial_id in self._live:
            self._queue.store(self._live[trial_id].key, rows[-1]["epoch"] + 1)
        if result.get("failure/kind") == "held" and trial_id in self._live:
            self.num_held += 1
            self._queue.again(self._live.pop(trial_id).key)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        run = self._live.pop(trial_id, None)
        if run is not None:
            last = result or {}
            kind = last.get("failure/kind")
            if (error and self._is_again(trial_id)) or kind == "declined":
                self._queue.again(run.key)
                return
            self._queue.lose(run.key, last.get("lost") or ())
            failed = error or bool(last.get("failure/kind"))
            if last.get(DONE) and not failed:
                self._queue.store(run.key, run.config.epochs)
            self._queue.end(run.key, failed=failed)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing; Tune calls this to save its searcher, but finished work is in the store."""

    def restore(self, checkpoint_path: str) -> None:
        """Raise an error; a study is resumed by launching it again, not by Tune."""
        raise RuntimeError(
            f"a study must be resumed by launching it again, got ({checkpoint_path=})."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}
