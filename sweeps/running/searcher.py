"""RunSearcher: hands ready runs to Tune, and releases forks when their stage is stored.

What an event costs here must not grow with the runs of the study.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ray.tune.result import DONE
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from sweeps.searching.sources import RunSource
from sweeps.state.stages import Need, PlannedRun
from sweeps.study.study import Run


class LiveTrials(FIFOScheduler):  # type: ignore[misc]
    """Tune's own scheduler without its look through every trial of the past before each event.

    What Tune keeps of the living trials is a set, in another order in every launch; here, too, the
    trial that was added first starts first.
    """

    def __init__(self) -> None:
        """Know of no trial yet."""
        super().__init__()
        self._places: dict[str, int] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Give a trial its place behind the others."""
        del tune_controller
        self._places.setdefault(trial.trial_id, len(self._places))

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Return the first trial that waits for its actor; None if none does."""
        live = tune_controller.get_live_trials()
        pending = (trial for trial in live if trial.status == trial.PENDING)
        return min(pending, key=lambda trial: self._places[trial.trial_id], default=None)


class RunSearcher(Searcher):  # type: ignore[misc]
    """Tune's source of trials: the runs of a study, each as soon as it can start.

    Tune polls `suggest` several times a second, so everything is answered from memory but new
    points. The store is the truth of what is done; nothing is saved here, and relaunching the study
    resumes it.
    """

    def __init__(
        self,
        source: RunSource,
        parameters: Callable[[PlannedRun], dict[str, Any]],
        join: Callable[[Sequence[PlannedRun]], None],
        first: Sequence[PlannedRun] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Queue the first runs.

        Args:
            source: Where runs come from.
            parameters: Gives the Tune configuration of a run's trial.
            join: Told of runs that have joined, before any of them starts.
            first: Runs that the source has given already.
            is_stopped: Says whether no more runs are to start.
        """
        super().__init__()
        self._source = source
        self._parameters = parameters
        self._join = join
        self._is_stopped = is_stopped
        self._ready: deque[PlannedRun] = deque()
        self._waiting: dict[str, dict[str, None]] = {}
        """Key of a run to those of the runs that wait for a stage of it."""
        self._underway: dict[str, PlannedRun] = {}
        self._live: dict[str, Run] = {}
        self._queue(first)

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the next run, None if it must wait for a stage, or that nothing is left."""
        if not self._is_stopped():
            if not self._ready:
                self._take_more()
            if self._ready:
                planned = self._ready.popleft()
                self._live[trial_id] = planned.run
                return self._parameters(planned)
        finished: str = Searcher.FINISHED
        return None if self._live else finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Release the forks whose stage this report says is stored; the last one ends the trial."""
        rows = result.get("rows")
        if rows and trial_id in self._live:
            self._release(self._live[trial_id].key, stored=rows[-1]["epoch"] + 1)

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
            failed = error or bool(last.get("failure/kind"))
            if last.get(DONE) and not failed:
                self._release(run.key, stored=run.config.epochs)
            del self._underway[run.key]
            self._replace_trunk(run.key)
            self._source.end(run, failed=failed)

    def save(self, checkpoint_path: str) -> None:
        """Write nothing: Tune snapshots its searcher, but the store is the truth."""

    def restore(self, checkpoint_path: str) -> None:
        """Refuse: a study is resumed by launching it again.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            f"`a study is resumed by launching it again` must hold, got ({checkpoint_path=})."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def _take_more(self) -> None:
        self._queue(self._source.more(self._underway.values()))

    def _queue(self, joined: Sequence[PlannedRun]) -> None:
        if joined:
            self._join(joined)
        for planned in joined:
            self._await(planned)

    def _await(self, planned: PlannedRun) -> None:
        """Let a run wait for what it needs; one that needs nothing is ready."""
        self._underway[planned.run.key] = planned
        for need in planned.needs:
            self._waiting.setdefault(need.run, {})[planned.run.key] = None
        if not planned.needs:
            self._ready.append(planned)

    def _release(self, trainer: str, stored: int) -> None:
        """Let the runs that wait for a stage go on: it is stored."""
        for key in self._waiting.pop(trainer, {}):
            planned = self._underway[key]
            met = [n for n in planned.needs if n.run == trainer and n.epoch <= stored]
            starts = [need.epoch for need in met if need.use == "start"]
            left = tuple(need for need in planned.needs if need not in met)
            self._await(replace(planned, needs=left, start=max([planned.start, *starts])))

    def _replace_trunk(self, ended: str) -> None:
        """Let the deepest fork of a trunk that ended early train the rest of the shared epochs.

        All forks of one trunk share its epochs, so the others share the deepest one's. A run that
        waits for a teacher which ended early waits no more, and learns from the store why.
        """
        orphans = [self._underway[key] for key in self._waiting.pop(ended, {})]
        forks = {
            planned.run.key: need.epoch
            for planned in orphans
            for need in planned.needs
            if need.run == ended and need.use == "start"
        }
        heir = max(forks, key=lambda key: forks[key], default=None)
        for planned in orphans:
            key = planned.run.key
            needs = tuple(need for need in planned.needs if need.run != ended)
            keep = planned.keep
            if heir is not None and key == heir:
                keep |= set(forks.values())
            elif heir is not None and key in forks:
                needs = (Need(run=heir, epoch=forks[key], use="start"), *needs)
            self._await(replace(planned, needs=needs, keep=keep))
