"""Selection: select the best point of a search, decide on pruning, and add the confirmation."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev

from mixup_core.keys import stage_keys
from mixup_core.problem import with_named_teacher
from mixup_core.store.checkpoints import Store
from sweeps.state.results import RunResult, failures_of, read_results
from sweeps.study.search import AddedArm, Point, Search, SearchHistory
from sweeps.study.study import Study


def grown_study(study: Study, history: SearchHistory, store: Store) -> Study:
    """Return a study with the points of its search as arms, and the confirmation once it is due.

    If no point is complete, it has no confirmation. A study without a search stays unchanged.
    """
    search = study.search
    if search is None:
        return study
    grown = study.grown(history.points)
    if not search.strategy.confirm_seeds or history.asks(search):
        return grown
    if not confirmation_is_due(study, history.points, failed=failures_of(grown.runs(), store)):
        return grown
    return study.grown(history.points, winner_of(study, history.points, store))


def confirmation_is_due(study: Study, points: Sequence[Point], failed: Collection[str]) -> bool:
    """True if every point has ended (complete, pruned, failed), or is open for a failed run."""
    waiting = [point for point in points if point.state == "open"]
    runs_of = study.grown(waiting).runs_of
    return all(any(run.key in failed for run in runs_of(point.arm)) for point in waiting)


def foreseen_study(study: Study) -> Study:
    """Return a study with all points that a grid search will propose as arms.

    Each computes something different from the arms and the others, and its runs would not fail.
    Other studies are unchanged.
    """
    search = study.search
    if search is None or search.strategy.sampler != "grid":
        return study
    arms, added, confirmed = dict(study.arms), dict(study.added), study.confirmed()
    keys = {stage_keys(with_named_teacher(arms[arm]))[-1] for arm in arms if arm not in confirmed}
    number = len(study.points())
    for values in search.space.grid():
        if not search.fits(values, study.seeds):
            continue
        config = search.config_of(values)
        content = stage_keys(with_named_teacher(config))[-1]
        if content not in keys:
            point = Point(number=number, values=values, state="open")
            arms[point.arm], added[point.arm] = config, AddedArm(seeds=study.seeds)
            keys.add(content)
            number += 1
    return replace(study, arms=arms, added=added)


def objectives_of(result: RunResult, search: Search) -> tuple[float, ...] | None:
    """Return the stored objectives of a run; None if it is not complete, or records not all."""
    if result.outcome != "complete":
        return None
    last, names = result.records[-1].metrics, search.strategy.objectives
    return tuple(last[name] for name in names) if all(name in last for name in names) else None


def winner_of(study: Study, points: Sequence[Point], store: Store) -> Point | None:
    """Return the best point of a search by its rule; None if no point is complete."""
    search = study.search
    assert search is not None

    def values_of(point: Point) -> list[float]:
        results = read_results(study.grown([point]).runs_of(point.arm), store)
        ends = [objectives_of(result, search) for result in results]
        return [end[0] for end in ends if end is not None]

    return select_point(search, points, values_of)


def select_point(
    search: Search, points: Sequence[Point], values_of: Callable[[Point], Sequence[float]]
) -> Point | None:
    """Return the best point by the search's selection rule; None if no point is complete.

    `values_of` returns the first objective of each run of a point.
    `val-mean` selects the point with the lowest mean of the first objective, the earliest if equal.
    `val-1se` selects the simplest point (`Space.rank`) whose mean is within one standard error of
    the lowest.
    """
    best = best_of(points)
    if best is None or search.strategy.select == "val-mean":
        return best
    values = values_of(best)
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    limit = best.objectives[0] + error
    close = [p for p in points if p.state == "complete" and p.objectives[0] <= limit]
    return min(close, key=lambda point: (search.space.rank(point.values), point.number))


def best_of(points: Sequence[Point]) -> Point | None:
    """Return the complete point with the lowest first objective, the earliest if equal."""
    # Frozen: the rule, also for equal means. A stored search would get another best point, which it
    # has not confirmed; tests/sweeps/searching/test_selection.py fails.
    complete = [point for point in points if point.state == "complete"]
    return min(complete, key=lambda point: (point.objectives[0], point.number), default=None)


def pareto_front(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the complete points that no other point dominates.

    A point dominates another if it is better in one objective and not worse in the others.
    """
    complete = [point for point in points if point.state == "complete"]
    return tuple(
        point
        for point in complete
        if not any(_dominates(other.objectives, point.objectives) for other in complete)
    )


def has_settled(points: Sequence[Point], variances: Mapping[str, float], after: int) -> bool:
    """Return True if the last points of a search improved by less than the noise over seeds.

    The improvement is the decrease of the lowest mean that the last points bring. The noise is the
    standard error of one mean, assuming the same variance between seeds at every complete point:

        noise = sqrt(mean of s^2 / n over the complete points),

    with s^2 the sample variance of the objective over the n seeds of a point.

    The result is False if no earlier point is complete, or no variance is known.

    A decrease below the noise may be chance: the lowest of k noisy means falls as k grows, even
    among equally good points. This rule therefore also ends a search that still improves, if
    `after` points together improve it by less than the noise.
    """
    closed = sorted(
        (point for point in points if point.state != "open"), key=lambda point: point.number
    )
    known = [variances[point.arm] for point in closed if point.arm in variances]
    before, last = closed[:-after], closed[-after:]
    best = best_of(before)
    if not known or best is None:
        return False
    best_of_last = min((p.objectives[0] for p in last if p.objectives), default=math.inf)
    return best.objectives[0] - best_of_last < math.sqrt(math.fsum(known) / len(known))


def is_clearly_worse(  # noqa: PLR0913  two points and settings of their search
    errors: Sequence[float],
    best: Sequence[float],
    *,
    points: int,
    size: int | None = None,
    looks: Sequence[int] = (),
    pooled: "PooledSpread | None" = None,
) -> bool:
    """Return True if a point may be pruned: it is significantly worse than the best point.

    Both points are compared at the same seeds by a one-sided paired t test. Its error level is the
    probability of pruning by chance if both points are equally good; it depends on `looks`.

    At most one look: the error level is 5 % / m, where m is the number of pairs of points, because
    any two may be compared. With 20 equally good points, 1.6 to 3.1 % of 20,000 simulated searches
    pruned a point, at 3, 5 and 10 seeds (`tests/reports/numbers/error_rates.py`).

    Several looks (a race): points are compared after more and more seeds. The best point is pruned
    in at most 5 % of searches: it may be compared with every other point, and all tests of one pair
    of points together have the error level 5 % / (points - 1), divided among the looks as in
    `sweeps.study.bounds`. A variance estimated from few seeds is uncertain, so the pooled variance
    of good points is used if it is larger. This assumes that all points vary equally over seeds. In
    1,000 simulated searches with 20 equally good points and 5 seeds, the best point was pruned in
    0.9 % of them, and in 5.5 % if it alone had three times the standard deviation of the others.

    If each error is a fraction of `size` images, the variance of the difference at one seed is
    taken to be at least max(|d|, 1 / size) / size, where d is the mean difference.
    """
    from scipy.special import stdtrit  # slow to import; not needed to read a study

    differences = [ours - theirs for ours, theirs in zip(errors, best, strict=True)]
    n = len(differences)
    mean = math.fsum(differences) / n
    variance = math.fsum((d - mean) ** 2 for d in differences) / (n - 1)
    if size is not None:
        variance = max(variance, max(abs(mean), 1 / size) / size)
    if len(looks) > 1:
        from sweeps.study.bounds import nominal_levels

        both_sides = nominal_levels(tuple(looks), _SPENDING, 2 * _MISSED / max(1, points - 1))
        level = both_sides[list(looks).index(n)] / 2
        if pooled is not None:
            limit = -float(stdtrit(pooled.freedom, level))
            return mean > limit * math.sqrt(max(variance, pooled.variance) / n)
    else:
        level = _MISSED / max(1, points * (points - 1) // 2)
    return bool(mean > -float(stdtrit(n - 1, level)) * math.sqrt(variance / n))


@dataclass(frozen=True, kw_only=True, slots=True)
class PooledSpread:
    """Variance of the difference between two points' objectives at one seed.

    Estimated from several points together.
    """

    variance: float
    freedom: int
    """Degrees of freedom of the estimate."""

    @classmethod
    def of(cls, values: Sequence[Sequence[float]]) -> "PooledSpread | None":
        """Estimate how much the difference of two points' objectives varies over seeds.

        The result is None for fewer than three points. Only the better half of the points is used,
        at least three, because bad points often vary more. The values are fitted by a mean, plus an
        effect of each point, plus an effect of each seed. The residuals have
        (points - 1) (seeds - 1) degrees of freedom; the variance of a difference is twice their
        variance.
        """
        if len(values) < 3:
            return None
        values = sorted(values, key=math.fsum)[: max(3, (len(values) + 1) // 2)]
        points = len(values)
        columns = [math.fsum(column) / points for column in zip(*values, strict=True)]
        seeds = len(columns)
        whole = math.fsum(columns) / seeds
        rows = [math.fsum(row) / seeds for row in values]
        squares = math.fsum(
            (value - columns[seed] - mean + whole) ** 2
            for row, mean in zip(values, rows, strict=True)
            for seed, value in enumerate(row)
        )
        freedom = (points - 1) * (seeds - 1)
        return cls(variance=2 * squares / freedom, freedom=freedom)


_MISSED = 0.05
"""Probability, over a whole search, that the best point is pruned wrongly."""
_SPENDING = 0.45
"""Exponent that spreads this probability over the looks of a race, as in
`UntilDecided.spending`.
"""


def _dominates(ours: tuple[float, ...], theirs: tuple[float, ...]) -> bool:
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))
