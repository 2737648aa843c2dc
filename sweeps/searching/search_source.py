"""SearchSource: the runs of a search, point after point as Optuna proposes them."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import variance
from typing import TYPE_CHECKING, Any

from mixup_core.store.checkpoints import Store
from sweeps.searching.selection import (
    PooledSpread,
    best_of,
    confirmation_is_due,
    has_settled,
    is_clearly_worse,
    objectives_of,
    winner_of,
)
from sweeps.searching.sources import Outlook, RunSource
from sweeps.state.ledger import launches
from sweeps.state.results import RunResult, diverged, failures_of, read_results
from sweeps.state.stages import PlannedRun, plan_keeping_results, plan_runs, proven_stages
from sweeps.study.budget import SECONDS_PER_HOUR, Spending
from sweeps.study.search import Point, Search
from sweeps.study.space import MAX_GRID
from sweeps.study.study import Run, Study

if TYPE_CHECKING:
    from sweeps.searching.proposals import Proposals  # imports Optuna


class SearchSource(RunSource):
    """Source of runs for a search: the arms, then proposed points, then the confirmation.

    It continues from the points in Optuna's storage and the results in the store.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        proposals: "Proposals",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a source that continues the points proposed so far."""
        assert study.search is not None
        super().__init__(study)
        self._bare = study
        self._search: Search = study.search
        self._store = store
        self._proposals = proposals
        num_searched = (self._search.points + len(study.arms)) * len(study.seeds)
        self.num_waiting = max(num_searched, self._num_confirming)
        self.num_known = 0
        """Number of points that were added because the store already had their results."""
        self._clock = clock
        hours_before, self._gpu_hours_before = proposals.spent
        self._started_at = clock() - hours_before * SECONDS_PER_HOUR
        self._trained = Spending()
        if self._search.strategy.warm_start:
            self.num_known = proposals.tell_known(self._known())
        points = proposals.points()
        self._points = {point.number: point for point in points}
        self._outstanding: dict[int, set[str]] = {}
        self._values: dict[str, tuple[float, ...]] = {}
        results = read_results(study.grown(points).runs(), store)
        known_arms = {point.arm for point in points if point.is_known}  # trained by other launches
        self._trained.add(result.stage for result in results if result.run.arm not in known_arms)
        # Results that the store lost; no best point is selected before they are trained again.
        closed, ended = {p.arm for p in points if p.state != "open"}, {"complete", "diverged"}
        lost = [r.run for r in results if r.run.arm in closed and r.outcome not in ended]
        self._lost = {run.key for run in lost}
        self._joining = [*study.runs(), *lost]  # a finished teacher may have lost its state
        self._winner: Point | None = None
        self._is_over = False
        for point in points:
            if point.state == "open":
                self._begin(point)
        self._conclude()

    def outlook(self, slots: int) -> Outlook:
        seeds, gpus = len(self._bare.seeds), self.gpus_per_run * slots
        to_ask = 0 if self._is_over else max(0, self._search.points - len(self._points))
        return Outlook(
            num_runs=to_ask * seeds,
            at_once=seeds,
            hours=self._search.budget.hours_left(self._hours(), self._gpu_hours(), gpus),
            num_last=0 if self._winner is not None else self._num_confirming,
        )

    @property
    def _num_confirming(self) -> int:
        """Number of runs of the confirmation: the best point and the arms, at its seeds."""
        return len(self._search.strategy.confirm_seeds) * (len(self._bare.fixed) + 1)

    def _known(self) -> Iterator[tuple[dict[str, Any], tuple[float, ...]]]:
        """Yield points whose runs at every seed are in the store already, with their objectives."""
        arms = [flat for launch in launches(self._store) for flat in launch.arms.values()]
        candidates = map(self._search.space.found_in, (*arms, *self._proposals.elsewhere()))
        inside = {repr(values): values for values in candidates if values is not None}
        for values in sorted(inside.values(), key=self._search.space.rank):
            try:
                runs = self._runs(Point(number=0, values=values, state="open"))
            except (ValueError, KeyError):
                continue  # invalid combination of values
            measured = [self._objectives(result) for result in read_results(runs, self._store)]
            whole = [value for value in measured if value is not None]
            if len(whole) == len(runs):
                yield values, tuple(_mean(column) for column in zip(*whole, strict=True))

    def _more(self, underway: Collection[PlannedRun]) -> Sequence[PlannedRun]:
        """Return the next runs: arms and points of earlier launches, new points, confirmation."""
        while True:
            is_grid = self._search.strategy.sampler == "grid"
            if self._asks() and (is_grid or not self._joining):
                # Add all points of a grid at once, so that they share as many stages as possible.
                self._begin_all(self._proposals.ask(MAX_GRID if is_grid else 1))
            if not self._joining and not self._asks():
                return ()
            joining, self._joining = self._joining, []
            if planned := self._planned(joining, underway):
                return planned

    def _end(self, run: Run) -> None:
        """Judge the points whose last started run this was; after an error they stay open."""
        was_lost = run.key in self._lost
        self._lost.discard(run.key)
        ended = [number for number, keys in self._outstanding.items() if keys == {run.key}]
        for keys in self._outstanding.values():
            keys.discard(run.key)
        for number in ended:
            self._judge(self._points[number])
        if self._search.budget.gpu_hours is not None:
            self._trained.add(result.stage for result in read_results([run], self._store))
        self._spend()
        # Growing a study takes time in proportion to its runs.
        if ended or was_lost:
            self._conclude()

    def _asks(self) -> bool:
        """Return True if another point may be proposed; otherwise record why the search ended."""
        if self._is_over or len(self._points) >= self._search.points:
            return False
        if self._search.budget.exceeded(self._hours(), self._gpu_hours()) is not None:
            self._spend()
            self._stop_asking()
        elif (after := self._search.strategy.stop_after) is not None:
            values = self._complete_values().items()
            variances = {arm: variance(v) / len(v) for arm, v in values if len(v) > 1}
            if has_settled(tuple(self._points.values()), variances, after):
                self._proposals.settle()
                self._stop_asking()
        return not self._is_over

    def _begin_all(self, asked: Sequence[Point]) -> None:
        """Start new points; an empty list records that the space is exhausted."""
        for point in asked:
            self._points[point.number] = point
            self._begin(point)
        if asked:
            self._conclude()  # the store may have all results of the last points already
        else:
            self._stop_asking()

    def _stop_asking(self) -> None:
        self._is_over = True
        self._conclude()

    def _begin(self, point: Point) -> None:
        """Start the first seeds of a point: all, or those before the first pruning decision."""
        first = self._runs(point)[: self._search.strategy.prune_after]
        self._outstanding[point.number] = {run.key for run in first if not self._has_ended(run)}
        if self._outstanding[point.number]:
            self._joining += first
        else:
            self._judge(point)

    def _judge(self, point: Point) -> None:
        """Decide on a point whose started seeds have ended: close it, or add its next seeds."""
        runs = self._runs(point)
        results = read_results(runs, self._store)
        values = [self._objectives(result) for result in results]
        measured = [value for value in values if value is not None]
        rest = [run for run in runs if not self._has_ended(run)]
        looks = self._search.strategy.prune_looks(len(runs))
        # Pruning compares means over the same first seeds, so none of them may lack a value.
        first_unknown = [*values, None].index(None)
        look = max((size for size in looks if size <= first_unknown), default=None)
        if len(measured) == len(runs):
            means = [_mean(column) for column in zip(*measured, strict=True)]
            self._close(replace(point, state="complete", objectives=tuple(means)))
        elif any(self._has_diverged(run) for run in runs) or any(
            value is None and result.outcome == "complete"
            for value, result in zip(values, results, strict=True)
        ):
            begun = max(number for number, run in enumerate(runs, 1) if run not in rest)
            early = None if begun == len(runs) else begun
            self._close(replace(point, state="failed", num_seeds=early))
        elif look is not None and not self._failed & {r.key for r in runs}:
            if not self._is_worse([value[0] for value in measured[:look]], looks):
                following = next((size for size in looks if size > look), len(runs))
                block = [run for run in runs[:following] if run in rest]
                self._outstanding[point.number] = {run.key for run in block}
                self._joining += block
                return
            self._close(replace(point, state="pruned", num_seeds=look))
        # Otherwise a seed failed or the driver must stop: the point stays open for the next launch.
        del self._outstanding[point.number]

    def _close(self, point: Point) -> None:
        self._proposals.tell(point)
        self._points[point.number] = point

    def _is_worse(self, errors: Sequence[float], looks: Sequence[int]) -> bool:
        best = best_of(tuple(self._points.values()))
        if best is None:
            return False
        values = self._complete_values()
        if best.arm not in values:  # the store lost a result of it
            return False
        problem, objective = self.study.problem, self._search.strategy.objectives[0]
        size = problem.measuring.sample_size(self._search.config_of(best.values), objective)
        pooled = PooledSpread.of(list(values.values()))
        theirs, points = values[best.arm][: len(errors)], self._search.points
        return is_clearly_worse(
            errors, theirs, points=points, size=size, looks=looks, pooled=pooled
        )

    def _complete_values(self) -> Mapping[str, tuple[float, ...]]:
        """Return the first objective at every seed of each complete point, by arm; read once.

        A point of which the store lost a result is left out until that seed is trained again.
        """
        for point in self._points.values():
            if point.state == "complete" and point.arm not in self._values:
                objectives = map(self._objectives, read_results(self._runs(point), self._store))
                values = tuple(value[0] for value in objectives if value is not None)
                if len(values) == len(self._bare.seeds):
                    self._values[point.arm] = values
        return self._values

    def _conclude(self) -> None:
        """Select the best point and add its confirmation, if every point is closed."""
        if self._winner is None and self._is_closed():
            self._is_over = True
            if self._search.strategy.confirm_seeds:
                self._winner = winner_of(self._bare, tuple(self._points.values()), self._store)
            if self._winner is not None:
                grown = self._grown()
                self._joining += grown.part(grown.confirmed()).runs()
        self.study = self._grown()

    def _is_closed(self) -> bool:
        enough = len(self._points) >= self._search.points or self._is_over
        if not enough or self._outstanding or self._lost:
            return False
        return confirmation_is_due(self._bare, tuple(self._points.values()), self._failed)

    def _grown(self) -> Study:
        return self._bare.grown(self._points.values(), self._winner)

    def _runs(self, point: Point) -> tuple[Run, ...]:
        return self._bare.grown([replace(point, num_seeds=None)]).runs_of(point.arm)

    def _planned(
        self, runs: Iterable[Run], underway: Collection[PlannedRun]
    ) -> tuple[PlannedRun, ...]:
        wanted = [run for run in runs if not self._has_diverged(run)]
        kept, store = () if self._is_over else self._bare.teachers(), self._store
        plan = plan_keeping_results(
            store, lambda: plan_runs(wanted, proven_stages(wanted, store), underway, kept)
        )
        return tuple(self._keeping_forks(self._keeping_network(p)) for p in plan.pending)

    def _keeping_network(self, planned: PlannedRun) -> PlannedRun:
        """Return a planned run; the winner's first run keeps the final state of its network."""
        winning = self.study.winning_run()
        if self.study.problem.network is None or winning is None:
            return planned
        if planned.run.key != winning.key:
            return planned
        return replace(planned, keep=planned.keep | {winning.config.epochs})

    def _keeping_forks(self, planned: PlannedRun) -> PlannedRun:
        if self._search.strategy.sampler == "grid" and self._search.strategy.prune_after is None:
            return planned  # all runs were planned together, including the states that others need
        epochs = {
            epoch
            for point in self._points.values()
            if point.arm == planned.run.arm
            for epoch in self._search.fork_epochs(point.values)
            if epoch > planned.first_epoch
        }
        return replace(planned, keep=planned.keep | epochs)

    def _has_diverged(self, run: Run) -> bool:
        runs = (*self._bare.runs(), run)
        return run.key in diverged(failures_of(runs, self._store))

    def _has_ended(self, run: Run) -> bool:
        (result,) = read_results([run], self._store)
        return result.outcome == "complete" or run.key in self._failed or self._has_diverged(run)

    def _objectives(self, result: RunResult) -> tuple[float, ...] | None:
        return objectives_of(result, self._search)

    def _hours(self) -> float:
        return (self._clock() - self._started_at) / SECONDS_PER_HOUR

    def _gpu_hours(self) -> float:
        """Return the GPU-hours so far, never less than recorded; 0 without a budget of them."""
        if self._search.budget.gpu_hours is None:
            return 0.0
        return max(self._gpu_hours_before, self._trained.gpu_hours)

    def _spend(self) -> None:
        self._proposals.spend(self._hours(), self._gpu_hours())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
