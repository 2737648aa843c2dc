"""LooksSource: the runs of a study that adds seeds until its claims are decided.

After each batch of seeds the claims are tested once (a "look"). Only stored results decide which
seeds come next, so after a killed driver the next one trains the same seeds.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.searching.sources import Outlook
from sweeps.state.stages import PlannedRun, let_results_stay, plan_study
from sweeps.study.search import SearchError
from sweeps.study.study import Run, Study


class LooksSource:
    """Source of runs that adds seeds at planned looks until every claim is decided.

    It starts with the seeds of the first look for every arm. After each look it adds the seeds that
    undecided claims need.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        reach: Callable[[], Study],
        *,
        keep_final_states: bool = False,
    ) -> None:
        """Create a source that continues from the stored results."""
        assert study.until is not None
        self.gpus_per_run = 0.0
        self.lacked_memory = False
        self.is_stopped = False
        self.trouble: SearchError | StoreError | None = None
        self._store = store
        self._reach = reach
        self._keeps = keep_final_states
        self._failed: set[str] = set()
        self._outstanding: set[str] = set()
        self._study = reach()
        self._sizes = study.until.sizes
        self._pending = self._planned()
        steps = [later - sooner for sooner, later in pairwise((0, *self._sizes))]
        self.num_waiting = max(len(self._pending), max(steps) * len(study.arms))

    @property
    def study(self) -> Study:
        """The study with the seeds that its arms have so far."""
        return self._study

    def more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return the runs of the next look; empty until all runs of the one before have ended."""
        del underway
        if self._outstanding or self.trouble is not None:
            return ()
        if not self._pending:
            try:
                grown = self._reach()
                if grown.reached != self._study.reached:
                    self._study = grown
                    self._pending = self._planned()
            except StoreError as error:
                self.trouble = error
        pending, self._pending = self._pending, ()
        self._outstanding = {planned.run.key for planned in pending}
        return pending

    def end(self, run: Run, *, failed: bool) -> None:
        """Record that a run has ended; the claims are tested later, in `more`."""
        self._outstanding.discard(run.key)
        if failed:
            self._failed.add(run.key)

    def outlook(self, slots: int) -> Outlook:
        """Return the number of runs left if each arm of an undecided claim gets all its seeds."""
        del slots
        if self._failed:  # the next look must wait until they are trained
            return Outlook(num_runs=len(self._pending))
        reached = max(self._study.reached.values())
        open_arms = sum(number == reached for number in self._study.reached.values())
        to_come = open_arms * (self._sizes[-1] - reached)
        return Outlook(num_runs=len(self._pending) + to_come, at_once=open_arms)

    def _planned(self) -> tuple[PlannedRun, ...]:
        plan = plan_study(self._study, self._store, keep_final_states=self._keeps)
        if let_results_stay(plan.finished, self._store):
            plan = plan_study(self._study, self._store, keep_final_states=self._keeps)
        return tuple(p for p in plan.pending if p.run.key not in self._failed)
