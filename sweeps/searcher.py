"""RunSearcher: hands ready runs to Tune, and releases forks when their stage is stored."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ray.tune.search import Searcher

from sweeps.sources import RunSource
from sweeps.stages import Fork, PlannedRun


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
    ) -> None:
        """Queue the first runs.

        Args:
            source: Where runs come from.
            parameters: Gives the Tune configuration of a run's trial.
            join: Told of runs that have joined, before any of them starts.
            first: Runs that the source has given already.
        """
        super().__init__()
        self._source = source
        self._parameters = parameters
        self._join = join
        self._ready: list[PlannedRun] = []
        self._waiting: dict[str, tuple[PlannedRun, Fork]] = {}
        self._live: dict[str, PlannedRun] = {}
        self._failed: set[str] = set()
        self._queue(first)

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the next run, None if it must wait for a stage, or that nothing is left."""
        if not self._ready:
            self._take_more()
        if self._ready:
            planned = self._live[trial_id] = self._ready.pop(0)
            return self._parameters(planned)
        finished: str = Searcher.FINISHED
        return None if self._live else finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Release the forks whose stage this report says is stored."""
        if result.get("failure"):
            self._failed.add(trial_id)
        rows = result.get("rows")
        if rows and trial_id in self._live:
            self._release(self._live[trial_id].run.key, stored=rows[-1]["epoch"] + 1)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Forget a trial; forks that still wait for it choose a new trunk among themselves."""
        del result
        planned = self._live.pop(trial_id, None)
        if planned is not None:
            self._replace_trunk(planned.run.key)
            self._source.end(planned.run, failed=error or trial_id in self._failed)

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
        waiting = [planned for planned, _ in self._waiting.values()]
        self._queue(self._source.more([*self._live.values(), *waiting]))

    def _queue(self, joined: Sequence[PlannedRun]) -> None:
        if joined:
            self._join(joined)
        for planned in joined:
            if planned.fork is None:
                self._ready.append(planned)
            else:
                self._waiting[planned.run.key] = (planned, planned.fork)

    def _release(self, trunk: str, stored: int) -> None:
        for key, (planned, fork) in list(self._waiting.items()):
            if fork.trunk == trunk and fork.epoch <= stored:
                self._ready.append(planned)
                del self._waiting[key]

    def _replace_trunk(self, ended: str) -> None:
        """Let the deepest fork of a trunk that ended early train the rest of the shared epochs.

        All forks of one trunk share its epochs, so the others share the deepest one's.
        """
        orphans = {key: entry for key, entry in self._waiting.items() if entry[1].trunk == ended}
        if not orphans:
            return
        heir = max(orphans, key=lambda key: orphans[key][1].epoch)
        planned, _ = self._waiting.pop(heir)
        shared = {fork.epoch for _, fork in orphans.values()}
        self._ready.append(replace(planned, fork=None, keep=planned.keep | shared))
        for key in orphans.keys() - {heir}:
            planned, fork = orphans[key]
            self._waiting[key] = (planned, Fork(trunk=heir, epoch=fork.epoch))
