"""Measure: the range of a metric, and exact limits of metrics that are proportions."""

import math
from dataclasses import dataclass

from scipy import special


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """The bounds of a metric, and the number of items that a proportion counts in each run."""

    least: float = -math.inf
    most: float = math.inf
    size: int | None = None
    """Images, classes or points counted in one run; None: the metric is no share that is known."""

    @property
    def is_bounded(self) -> bool:
        """True if both bounds are finite."""
        return math.isfinite(self.least) and math.isfinite(self.most)


_MOST_EFFECTIVE = 1e8
"""Beyond it the incomplete beta function loses its digits."""

ANY = Measure()
"""A metric of which nothing is known."""


def least_variance(mean: float, size: int, *, is_difference: bool) -> float:
    """Return the least credible variance over seeds of a proportion of so many items.

    A share p of N things varies by p (1 - p) / N from sample to sample. Two runs on the same things
    whose shares differ by d disagree on at least N |d| of them, which varies the difference by at
    least |d| / N (McNemar 1947). One thing always counts.
    """
    share = abs(mean) if is_difference else max(0.0, min(1.0, mean)) * (1 - min(1.0, mean))
    return max(share, 1 / size) / size


def share_limits(
    mean: float, sd: float, n: int, measure: Measure, confidence: float
) -> tuple[float, float]:
    """Return the exact interval of a mean of shares over seeds, never outside of its bounds.

    Clopper and Pearson's limits for the effective number of things: N n where seeds vary no more
    than counting allows, fewer where the things of one seed go together, so that seeds and not
    things are counted (Korn and Graubard 1998, Survey Methodology 24). Where nothing is counted the
    spread over seeds alone decides, and without a spread a seed counts as one thing. Things that go
    together in a way that no seed shows, as all 6 classes of each of 10 seeds, are not recognised.

    Args:
        mean: Over the seeds, within the bounds.
        sd: Sample standard deviation over the seeds.
        n: Number of seeds, at least 2.
        measure: With two finite bounds.
        confidence: Level of the interval.
    """
    width = measure.most - measure.least
    share = min(1.0, max(0.0, (mean - measure.least) / width))
    effective, tail = float(n * (measure.size or 1)), (1 - confidence) / 2
    if sd > 0 and 0 < share < 1:
        few = float(special.stdtrit(n - 1, 1 - tail))
        if measure.size is None:
            many = float(special.ndtri(1 - tail))
        else:
            many = float(special.stdtrit(effective - 1, 1 - tail))
        seeds = n * share * (1 - share) * (width / sd) ** 2 * (many / few) ** 2
        effective = min(_MOST_EFFECTIVE if measure.size is None else effective, seeds)
    found = share * effective
    low = float(special.betaincinv(found, effective - found + 1, tail)) if found > 0 else 0.0
    rest = effective - found
    high = float(special.betaincinv(found + 1, rest, 1 - tail)) if rest > 0 else 1.0
    return measure.least + width * low, measure.least + width * high
