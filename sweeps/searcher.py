"""RunSearcher: hands ready runs to Tune, and releases forks when their stage is stored."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ray.tune.search import Searcher

from sweeps.stages import Fork, Plan, PlannedRun


class RunSearcher(Searcher):  # type: ignore[misc]
    """Tune's source of trials: the runs of a plan, each as soon as it can start.

    Tune polls `suggest` several times a second, so everything is answered from memory. The store
    is the truth of what is done; nothing is saved here, and relaunching the study resumes it.
    """

    def __init__(self, plan: Plan, parameters: Callable[[PlannedRun], dict[str, Any]]) -> None:
        """Queue the runs of a plan.

        Args:
            plan: What is left to train.
            parameters: Gives the Tune configuration of a run's trial.
        """
        super().__init__()
        self._parameters = parameters
        self._ready = [planned for planned in plan.pending if planned.fork is None]
        self._waiting = {
            planned.run.key: (planned, planned.fork)
            for planned in plan.pending
            if planned.fork is not None
        }
        self._live: dict[str, PlannedRun] = {}

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return the next run, None if it must wait for a stage, or that nothing is left."""
        if self._ready:
            planned = self._live[trial_id] = self._ready.pop(0)
            return self._parameters(planned)
        finished: str = Searcher.FINISHED
        return None if self._live else finished

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Release the forks whose stage this report says is stored."""
        rows = result.get("rows")
        if rows and trial_id in self._live:
            self._release(self._live[trial_id].run.key, stored=rows[-1]["epoch"] + 1)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Forget a trial; forks that still wait for it choose a new trunk among themselves."""
        del result, error
        planned = self._live.pop(trial_id, None)
        if planned is not None:
            self._replace_trunk(planned.run.key)

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
