"""RunSearcher: the queue of runs as Tune asks for trials."""

import math
from collections.abc import Callable
from typing import Any

from ray.tune.result import DONE
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from sweeps.running.run_queue import RunQueue
from sweeps.state.stages import PlannedRun
from sweeps.study.study import Run


class LiveTrials(FIFOScheduler):  # type: ignore[misc]
    """Tune's own scheduler without its look through every trial of the past before each event.

    What Tune keeps of the living trials is a set, in another order in every launch; here, too, the
    trial that was added first starts first.
    """

    def __init__(self, on_error: Callable[[Any], None] = lambda _: None) -> None:
        """Know of no trial yet.

        Args:
            on_error: Called with a trial that has failed, before its searcher hears of it.
        """
        super().__init__()
        self._on_error = on_error
        self._places: dict[str, int] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Give a trial its place behind the others."""
        del tune_controller
        self._places.setdefault(trial.trial_id, len(self._places))

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """Pass a failed trial on."""
        del tune_controller
        self._on_error(trial)

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Return the first trial that waits for its actor; None if none does."""
        live = tune_controller.get_live_trials()
        pending = (trial for trial in live if trial.status == trial.PENDING)
        return min(pending, key=lambda trial: self._places[trial.trial_id], default=None)


class RunSearcher(Searcher):  # type: ignore[misc]
    """Tune's source of trials: the runs of a study, each as soon as it can start.

    Tune polls `suggest` several times a second. The store is the truth of what is done; nothing is
    saved here, and relaunching the study resumes it.
    """

    def __init__(
        self,
        queue: RunQueue,
        parameters: Callable[[PlannedRun], dict[str, Any]],
        is_stopped: Callable[[], bool] = lambda: False,
        is_again: Callable[[str], bool] = lambda _: False,
        limit: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """Wrap a queue.

        Args:
            queue: Gives the runs.
            parameters: Returns the Tune configuration of a run's trial.
            is_stopped: Returns True if no more runs are to start.
            is_again: Returns True for a trial that failed and whose run is to be tried again.
            limit: Returns the number of runs that may be live at once.
        """
        super().__init__()
        self._queue = queue
        self._parameters = parameters
        self._is_stopped = is_stopped
        self._is_again = is_again
        self._limit = limit
        self._live: dict[str, Run] = {}
        self.num_held = 0
        """Trials that hold a sick device."""
        self.is_idle = False
        """True if no run is live and none is ready."""

    @property
    def num_live(self) -> int:
        """Runs that have a trial."""
        return len(self._live)

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the next run, None if it must wait for a stage, or that nothing is left."""
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
        """Release the forks whose stage this report says is stored; the last one ends the trial.

        Args:
            trial_id: The trial.
            result: A report, flattened as for `on_trial_complete`.
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
        """Forget a trial; what waits for it goes on, or forks choose a new trunk among themselves.

        Args:
            trial_id: The trial.
            result: Its last report, flattened: what a failure holds is found under `failure/...`.
            error: Whether its process died once too often.
        """
        run = self._live.pop(trial_id, None)
        if run is not None:
            last = result or {}
            kind = last.get("failure/kind")
            if (error and self._is_again(trial_id)) or kind in {"declined", "behind"}:
                start = last.get("failure/epoch") if kind == "behind" else None
                self._queue.again(run.key, start)
                return
            self._queue.lose(run.key, last.get("lost") or ())
            failed = error or bool(last.get("failure/kind"))
            if last.get(DONE) and not failed:
                self._queue.store(run.key, run.config.epochs)
            self._queue.end(run.key, failed=failed)

    def save(self, checkpoint_path: str) -> None:
        """Write nothing: Tune snapshots its searcher, but the store is the truth."""

    def restore(self, checkpoint_path: str) -> None:
        """Refuse: a study is resumed by launching it again.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            f"a study must be resumed by launching it again, got ({checkpoint_path=})."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}
