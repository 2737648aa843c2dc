"""Sources of runs: give an engine (Ray or inline) the runs of a study without a search."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.state.results import begun_seeds, read_results, spending_of
from sweeps.state.stages import Plan, PlannedRun, plan_keeping_results, plan_study
from sweeps.study.budget import SECONDS_PER_HOUR
from sweeps.study.search import SearchError
from sweeps.study.study import Run, Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """Largest number of runs that a search, or further seeds, may still add to a launch."""

    num_runs: int = 0
    """Number of runs that may still be added; pruned points need fewer."""
    at_once: int = 1
    """Number of runs that are added together, such as all seeds of a point."""
    hours: float | None = None
    """Hours until the time budget is used up; None without such a budget."""
    num_last: int = 0
    """Number of runs of a search's confirmation, which are added last."""


class RunSource:
    """Source of the runs of a launch. This one gives out all missing runs of a study at once.

    A source decides which runs are trained; the `RunQueue` of the launch decides when each starts.
    """

    def __init__(self, study: Study, pending: Sequence[PlannedRun] = ()) -> None:
        self.study = study
        """The study with all arms and seeds that it has so far."""
        self.num_waiting = len(pending)
        """Upper bound of the number of runs that wait for a slot at the same time."""
        self.gpus_per_run = 0.0
        """GPUs per run, used to count GPU-hours; set by the engine."""
        self.is_stopped = False
        """True if the launch must start no more runs; set by the engine."""
        self.trouble: SearchError | StoreError | None = None
        """Error that stopped the source before all runs were given out; None if there was none."""
        self._pending = pending
        self._failed: set[str] = set()

    def more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return new runs to train; empty if there are none at present.

        The engine calls this whenever it has room for a run and no run waits.
        """
        if self.trouble is None:
            try:
                return self._more(underway)
            except (SearchError, StoreError) as error:
                self.trouble = error
        return ()

    def end(self, run: Run, *, failed: bool) -> None:
        """Record that a run has ended; the engine calls this once the result is in the store."""
        if failed:
            self._failed.add(run.key)
        try:
            self._end(run)
        except (SearchError, StoreError) as error:
            self.trouble = error

    def outlook(self, slots: int) -> Outlook:
        """Return an upper bound of the runs that `more` may still return, to estimate the end."""
        del slots
        return Outlook(num_runs=len(self._pending))

    def _more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        del underway
        pending, self._pending = self._pending, ()
        return pending

    def _end(self, run: Run) -> None:
        pass


class BudgetedSource(RunSource):
    """Source that gives out missing runs, all arms at one seed before the next, within a budget.

    All arms get the same seeds, so they stay paired. A seed that an earlier launch has started
    comes first, and is finished even if the budget is used up.
    """

    def __init__(
        self,
        study: Study,
        plan: Plan,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(study, plan.pending)
        self._store = store
        self._results = {r.run.key: r for r in read_results(study.runs(), store)}
        self._begun = {key for key, r in self._results.items() if r.outcome != "missing"}
        self._begun_before = begun_seeds(self._results.values())
        self._clock = clock
        self._spent_at, self._spending = clock(), spending_of(self._results.values())
        groups = [[p for p in plan.pending if p.run.seed == seed] for seed in study.seeds]
        self._groups = sorted(filter(None, groups), key=lambda g: not self._was_begun(g))

    def outlook(self, slots: int) -> Outlook:
        gpus = self.gpus_per_run * slots
        hours = (self._clock() - self._spent_at) / SECONDS_PER_HOUR
        begun, limit, to_come = len(self._begun), self.study.budget.runs, 0
        for group in self._groups:
            if limit is not None and begun >= limit and not self._was_begun(group):
                break
            begun += sum(planned.run.key not in self._begun for planned in group)
            to_come += len(group)
        return Outlook(
            num_runs=to_come,
            at_once=len(self.study.arms),
            hours=self.study.budget.hours_left(
                self._spending.hours + hours, self._spending.gpu_hours + hours * gpus, gpus
            ),
        )

    def _more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        del underway
        if not self._groups:
            return ()
        group = self._groups.pop(0)
        if not self._was_begun(group) and self._is_spent():
            self._groups = []
            return ()
        self._begun |= {planned.run.key for planned in group}
        return group

    def _was_begun(self, group: Sequence[PlannedRun]) -> bool:
        return group[0].run.seed in self._begun_before

    def _is_spent(self) -> bool:
        changing = [
            result.run
            for key, result in self._results.items()
            if key in self._begun and result.outcome != "complete"
        ]
        self._results |= {r.run.key: r for r in read_results(changing, self._store)}
        self._spent_at, self._spending = self._clock(), spending_of(self._results.values())
        of_study = self._spending.hours, self._spending.gpu_hours, len(self._begun)
        return self.study.budget.exceeded(*of_study) is not None


class LooksSource(RunSource):
    """Source of runs that adds seeds at planned looks until every claim is decided.

    It starts with the seeds of the first look for every arm. After each look, that is, one test of
    all claims, it adds the seeds that undecided claims need. Only stored results decide which seeds
    come next, so after a killed driver the next one trains the same seeds.
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
        super().__init__(reach())
        self._store = store
        self._reach = reach
        self._keeps = keep_final_states
        self._outstanding: set[str] = set()
        self._sizes = study.until.sizes
        self._pending = self._planned()
        steps = [later - sooner for sooner, later in pairwise((0, *self._sizes))]
        self.num_waiting = max(len(self._pending), max(steps) * len(study.arms))

    def outlook(self, slots: int) -> Outlook:
        if self._failed:  # the next look must wait until they are trained
            return super().outlook(slots)
        reached = max(self.study.reached.values())
        open_arms = sum(number == reached for number in self.study.reached.values())
        to_come = open_arms * (self._sizes[-1] - reached)
        return Outlook(num_runs=len(self._pending) + to_come, at_once=open_arms)

    def _more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return the runs of the next look; empty until all runs of the one before have ended."""
        if self._outstanding:
            return ()
        if not self._pending:
            grown = self._reach()
            if grown.reached != self.study.reached:
                self.study = grown
                self._pending = self._planned()
        pending = super()._more(underway)
        self._outstanding = {planned.run.key for planned in pending}
        return pending

    def _end(self, run: Run) -> None:
        self._outstanding.discard(run.key)

    def _planned(self) -> tuple[PlannedRun, ...]:
        study, store = self.study, self._store
        again = partial(plan_study, study, store, keep_final_states=self._keeps)
        plan = plan_keeping_results(store, again)
        return tuple(p for p in plan.pending if p.run.key not in self._failed)
