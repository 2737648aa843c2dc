"""Power: the number of seeds that a claim needs, or the difference that its seeds can detect."""

import math
from collections.abc import Sequence
from functools import cache

from scipy import special

from reports.numbers.effects import POWER
from reports.numbers.foresight import draw_effects, foresee
from reports.numbers.summary import CONFIDENCE
from sweeps.study.claims import UntilDecided

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

    if not finds(MOST_SEEDS):
        return None
    low, high = 1, MOST_SEEDS  # power rises with the number of seeds
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle, high)
    return high


@cache
def found_by_looks(until: UntilDecided, tests: int) -> float:
    """Return the mean difference that tests at planned looks detect with power 0.8 (simulated).

    The unit is the sd of the difference over seeds.
    """
    drawn = draw_effects(until, [0.0], _STUDIES)

    def power(difference: float) -> float:
        found = foresee(until, [_is_told], drawn + difference, tests=tests)
        return float(found.is_decided.mean())

    low, high = 0.0, 1.0
    while power(high) < POWER and high < 64:
        low, high = high, 2 * high
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def sd_of(values: Sequence[float]) -> float | None:
    """Return the sample sd of paired differences; None if fewer than two, or if all are equal."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return spread or None


def _is_told(low: float, high: float) -> bool:
    return low > 0 or high < 0
