"""Power: what n seeds can decide, the seeds that a claim needs, and simulated planned looks."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mixup_core.arrays import Floats
from reports.numbers.comparison import contrast
from reports.numbers.looks import Decides, chance_at_the_end
from reports.numbers.summary import CONFIDENCE, Measure, chi_square_quantile
from reports.numbers.verdict import least_seeds
from sweeps.study.bounds import nominal_levels
from sweeps.study.claims import Decision, StatedComparison, UntilDecided

POWER = 0.8
"""Power (probability of a significant result) at which a difference counts as detectable."""

STUDIES = 300
"""Number of simulated studies. The standard error of a mean number of seeds is then at most 0.5, if
the plan has 20 seeds.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    """Result of simulated studies with planned looks: each claim's number of seeds and decision."""

    seeds: NDArray[np.int64]
    """Number of seeds at the last look at a claim; shape (studies, claims)."""
    is_decided: NDArray[np.bool_]

    def reached(self, arms: Sequence[frozenset[str]], arm: str, at_least: int) -> NDArray[np.int64]:
        """Return the number of seeds that an arm gets in each simulated study."""
        places = [place for place, of_claim in enumerate(arms) if arm in of_claim]
        largest = self.seeds[:, places].max(axis=1, initial=at_least)
        return np.asarray(largest, dtype=np.int64)


def foresee(
    until: UntilDecided,
    decides: Sequence[Decides],
    values: Floats,
    *,
    tests: int | None = None,
    after: int = 0,
) -> Foreseen:
    """Simulate planned looks; return the number of seeds and the decision of each claim.

    All claims share the error level of 5 % equally. In a real study, Holm's procedure raises the
    share of a claim once other claims are decided, so real studies need no more seeds than this.
    """
    level = (1 - CONFIDENCE) / (tests or len(decides))
    sizes = until.sizes
    nominal = nominal_levels(sizes, until.spending, level)
    seeds = np.full(values.shape[:2], sizes[-1])
    is_decided = np.zeros(values.shape[:2], dtype=bool)
    for claim, decide in enumerate(decides):
        for study, drawn in enumerate(values[:, claim]):
            for n, of_look in zip(sizes, nominal, strict=True):
                if n <= after:
                    continue
                mean, spread = float(drawn[:n].mean()), float(drawn[:n].std(ddof=1))
                half = -float(special.stdtrit(n - 1, of_look / 2)) * spread / n**0.5
                is_decided[study, claim] = decide(mean - half, mean + half)
                chance = chance_at_the_end(until, decide, n, mean, spread, nominal[-1])
                if is_decided[study, claim] or chance < until.futility:
                    seeds[study, claim] = n
                    break
    return Foreseen(seeds=seeds, is_decided=is_decided)


def draw_effects(
    until: UntilDecided, effects: Sequence[float], studies: int = STUDIES, seed: int = 0
) -> Floats:
    """Draw random values of claims for simulated studies: normal, independent, with sd 1."""
    drawn = np.random.default_rng(seed).standard_normal((studies, len(effects), until.sizes[-1]))
    return np.asarray(drawn + np.asarray(effects)[:, None])


def draw_after(
    until: UntilDecided, pilot: Sequence[Mapping[int, float]], studies: int = STUDIES
) -> Floats:
    """Return values of claims in simulated studies: measured at the first seeds, then sampled.

    Mean and spread are sampled from their posterior under the flat prior. The simulated seeds have
    the same correlation between claims as the measured ones.
    """
    number = until.sizes[-1]
    first = np.array([[by_seed[seed] for seed in sorted(by_seed)] for by_seed in pilot])[:, :number]
    n = first.shape[1]
    mean, centred = first.mean(axis=1), first - first.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    scale = 1 / np.sqrt(rng.chisquare(n - 1, studies))
    middle = rng.standard_normal((studies, 1, n)) / n**0.5
    coming = rng.standard_normal((studies, number - n, n)) + middle
    drawn = mean[:, None] + scale[:, None, None] * np.einsum("ck,stk->sct", centred, coming)
    repeated = np.broadcast_to(first, (studies, *first.shape))
    return np.concatenate([repeated, drawn], axis=2)


MOST_SEEDS = 10_000
"""Largest number of seeds that is tried."""
_STUDIES = 200
"""Number of simulated studies for each difference tried; the detectable difference is then exact to
5 %.
"""


def seeds_to_find(distance: float, tests: int = 1, *, is_between: bool = False) -> int | None:
    """Return the smallest number of seeds that finds a claim's verdict with power 0.8.

    The test is a two-sided paired t test at 5 %, adjusted for the number of tests (Bonferroni). A
    claim with two ends of its allowed values (`is_between`) needs two successful tests, one against
    each end. The power is then taken as 1 minus the sum of the probabilities that each fails. It
    may really be higher, so the number may be slightly too large.
    """
    missed = (1 - POWER) / 2 if is_between else 1 - POWER

    def finds(n: int) -> bool:
        critical = special.stdtrit(n - 1, 1 - (1 - CONFIDENCE) / (2 * tests))
        return (
            not special.nctdtr(n - 1, distance * math.sqrt(n), critical) > missed
        )  # NaN counts as found

    numbers = range(2, MOST_SEEDS + 1)
    place = bisect_left(numbers, True, key=finds)  # power rises with the number of seeds
    return numbers[place] if place < len(numbers) else None


@cache
def found_by_looks(until: UntilDecided, tests: int) -> float:
    """Return the mean difference that tests at planned looks detect with power 0.8 (simulated).

    The unit is the sd of the difference over seeds.
    """
    drawn = draw_effects(until, [0.0], _STUDIES)

    def power(difference: float) -> float:
        foreseen = foresee(until, [_is_told], drawn + difference, tests=tests)
        return float(foreseen.is_decided.mean())

    low, high = 0.0, 1.0
    while power(high) < POWER and high < 64:
        low, high = high, 2 * high
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def _is_told(low: float, high: float) -> bool:
    return low > 0 or high < 0


_PARTS = (0.0, 1.0, 0.5)
"""Values that are tried for an arm, as fractions of the way from the lower to the upper bound of
the metric.
"""

_SPREAD = 1e-6
"""Spread over seeds of the values that are tried, as a fraction of the width between the bounds of
the metric. Used for metrics that are no counts: without a spread, their interval would be that of a
count.
"""


def reachable(that: StatedComparison, measures: Mapping[str, Measure], n: int) -> set[Decision]:
    """Return the verdicts on a claim (`holds`, `fails`) that results at n seeds can lead to.

    Several made-up results are tried. In each, all seeds of an arm have nearly the same value,
    because this gives the narrowest intervals. The values are the ends of the metric's range and
    their middle; a claim about one arm alone also tries the ends and the middle of the values that
    the claim allows. Intervals are those of a single test, the narrowest that Holm's procedure can
    give. A metric with an unlimited range can lead to both verdicts.
    """
    if n < least_seeds(that):
        return set()
    if that.of == "variance":
        return {"holds", "fails"}
    terms = that.terms
    of_arms = [measures[arm] for arm in terms]
    if not all(measure.is_bounded for measure in of_arms):
        return {"holds", "fails"}
    both: set[Decision] = {"holds", "fails"}
    reached: set[Decision] = set()
    for values in product(*(_places(measure, that) for measure in of_arms)):
        sides = [
            (factor, _seeds(value, measure, n, place), measure)
            for place, (factor, value, measure) in enumerate(
                zip(terms.values(), values, of_arms, strict=True)
            )
        ]
        interval = contrast(sides).interval(CONFIDENCE)
        if interval is not None:
            reached.add(that.judge(*interval))
        if both <= reached:
            break
    return reached & both


def _seeds(value: float, measure: Measure, n: int, place: int) -> dict[int, float]:
    """Return a value for each of n seeds, all equal or nearly equal to a given value."""
    width = measure.most - measure.least
    step = _SPREAD * width * (place + 1)
    if measure.size is not None:
        step = width / measure.size if n == 2 and place == 0 else 0.0
    start = min(measure.most - step, value)
    return {seed: start + step * (seed % 2) for seed in range(n)}


def _places(measure: Measure, that: StatedComparison) -> list[float]:
    """Return the values that are tried for an arm."""
    width = measure.most - measure.least
    places = [measure.least + width * part for part in _PARTS]
    if len(that.terms) == 1:
        (factor,) = that.terms.values()
        ends = [end / factor for end in that.allowed if math.isfinite(end)]
        places += [*ends, sum(ends) / max(1, len(ends))]
    return [place for place in places if measure.least <= place <= measure.most]


def detectable_difference(n: int, comparisons: int = 1) -> float:
    """Return the mean difference that n seeds detect with power 0.8, in sd of the differences.

    The test is two-sided at 5 %, adjusted for the number of comparisons. Power is computed from the
    noncentral t; rejections on the wrong side, below one in a million here, are ignored. The true
    sd is taken as known. With an sd estimated at n = 5, the power is 0.69 on average, not 0.8.
    """
    critical = special.stdtrit(n - 1, 1 - (1 - CONFIDENCE) / (2 * comparisons))
    return float(special.nctdtrinc(n - 1, 1 - POWER, critical)) / math.sqrt(n)


def upper_sd(sd: float, n: int) -> float:
    """Return the upper 95 % confidence limit of the true sd, for an sd estimated from n values.

    The values are assumed to be normal. The one-sided limit is sd sqrt((n - 1) / q), with q the 5 %
    quantile of chi-square with n - 1 degrees of freedom.
    """
    return sd * math.sqrt((n - 1) / chi_square_quantile(1 - CONFIDENCE, n - 1))


def detectable_ratio(n: int, size: int) -> float:
    """Return the ratio of variances that many seeds detect with power 0.8 in a family of tests.

    The values of both arms are normal and independent, so the log variance of each has the
    standard deviation sqrt(2 / (n - 1)). In 20,000 samples each, the power was 0.68 at 10 seeds,
    0.75 at 20 and 0.78 at 50.
    """
    return math.exp(detectable_difference(n, size) * math.sqrt(4 * n / (n - 1)))
