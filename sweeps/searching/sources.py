"""Sources of runs: what a study's runs come from, and two that know all of them beforehand."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.searching.outlook import Outlook
from sweeps.state.results import begun_seeds, read_results, spending_of
from sweeps.state.stages import Plan, PlannedRun
from sweeps.study.budget import SECONDS_PER_HOUR
from sweeps.study.search import SearchError
from sweeps.study.study import Run, Study


class RunSource(Protocol):
    """Runs to train. What it knows of a run that ended it reads from the store."""

    gpus_per_run: float
    """GPUs of one run, for budgets; set when the cluster is known."""
    lacked_memory: bool
    """Whether a run has failed for lack of memory; set by whoever trains."""
    is_stopped: bool
    """Whether the launch was asked to begin no more runs; set by whoever trains."""
    num_waiting: int
    """Runs that it may have for slots, at most, when it is made."""
    trouble: SearchError | StoreError | None
    """Why no more runs come although some are left; None while that is not so."""

    @property
    def study(self) -> Study:
        """The study with every arm that it has by now."""

    def more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return runs that join, none if there are none at the moment.

        Called often, whenever a slot is free and nothing waits for it.

        Args:
            underway: Runs returned before that have not ended.
        """

    def end(self, run: Run, *, failed: bool) -> None:
        """Take note that a run has ended, and whether it failed."""

    def outlook(self, slots: int) -> Outlook:
        """Return what may still join.

        Args:
            slots: Runs trained side by side, for budgets of GPU-hours.
        """


class FixedSource:
    """The runs that a study without a search lacks, all at once."""

    def __init__(self, study: Study, plan: Plan) -> None:
        """Make a source of a plan."""
        self.gpus_per_run = 0.0
        self.lacked_memory = False
        self.is_stopped = False
        self.trouble: SearchError | StoreError | None = None
        self._study = study
        self.num_waiting = len(plan.pending)
        self._pending = plan.pending

    @property
    def study(self) -> Study:
        """The study."""
        return self._study

    def more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return the plan, once."""
        del underway
        pending, self._pending = self._pending, ()
        return pending

    def end(self, run: Run, *, failed: bool) -> None:
        """Do nothing: no run depends on another's result."""

    def outlook(self, slots: int) -> Outlook:
        """Return that nothing joins once the plan was given."""
        del slots
        return Outlook(num_runs=len(self._pending))


class BudgetedSource:
    """The runs that a study without a search lacks, seed by seed for as long as its budget lasts.

    Every arm then has the same seeds but for failures, so that arms stay paired. A seed of which a
    run was begun before comes first, and is finished whatever was spent.
    """

    def __init__(
        self,
        study: Study,
        plan: Plan,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a source of a plan.

        Args:
            study: A study with a budget.
            plan: What it lacks.
            store: Where results are.
            clock: Seconds, for how long the budget lasts.
        """
        self.gpus_per_run = 0.0
        self.lacked_memory = False
        self.is_stopped = False
        self.trouble: SearchError | StoreError | None = None
        self._study = study
        self._store = store
        self._results = {r.run.key: r for r in read_results(study.runs(), store)}
        self._begun = {key for key, r in self._results.items() if r.outcome != "missing"}
        self._begun_before = begun_seeds(self._results.values())
        self._clock = clock
        self._spent_at, self._spending = clock(), spending_of(self._results.values())
        self.num_waiting = len(plan.pending)
        groups = [[p for p in plan.pending if p.run.seed == seed] for seed in study.seeds]
        self._groups = sorted(filter(None, groups), key=lambda g: not self._was_begun(g))

    @property
    def study(self) -> Study:
        """The study."""
        return self._study

    def more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return the runs of one seed; none from when the budget is spent."""
        del underway
        if not self._groups:
            return ()
        group = self._groups.pop(0)
        if not self._was_begun(group) and self._is_spent():
            self._groups = []
            return ()
        self._begun |= {planned.run.key for planned in group}
        return group

    def end(self, run: Run, *, failed: bool) -> None:
        """Do nothing: what was spent is read when a seed is to begin."""

    def outlook(self, slots: int) -> Outlook:
        """Return the seeds to come, as if runs were in training since the store was looked at."""
        gpus = self.gpus_per_run * slots
        hours = (self._clock() - self._spent_at) / SECONDS_PER_HOUR
        begun, limit, to_come = len(self._begun), self._study.budget.runs, 0
        for group in self._groups:
            if limit is not None and begun >= limit and not self._was_begun(group):
                break
            begun += sum(planned.run.key not in self._begun for planned in group)
            to_come += len(group)
        return Outlook(
            num_runs=to_come,
            at_once=len(self._study.arms),
            hours=self._study.budget.hours_left(
                self._spending.hours + hours, self._spending.gpu_hours + hours * gpus, gpus
            ),
        )

    def _was_begun(self, group: Sequence[PlannedRun]) -> bool:
        return group[0].run.seed in self._begun_before

    def _is_spent(self) -> bool:
        changing = [
            result.run
            for key, result in self._results.items()
            if key in self._begun and result.outcome != "complete"
        ]
        try:
            self._results |= {r.run.key: r for r in read_results(changing, self._store)}
        except StoreError as error:
            self.trouble = error
            return True
        self._spent_at, self._spending = self._clock(), spending_of(self._results.values())
        of_study = self._spending.hours, self._spending.gpu_hours, len(self._begun)
        return self._study.budget.exceeded(*of_study) is not None
