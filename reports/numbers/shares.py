"""Shares: range, least variance and exact intervals of metrics that are fractions of images."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """Possible range of a metric and, if it is a fraction of items such as images, their number."""

    least: float = -math.inf
    most: float = math.inf
    size: int | None = None
    """Number of items counted in one run; None if it is unknown or the metric is no fraction."""

    @property
    def is_bounded(self) -> bool:
        """True if the smallest and the largest possible value of the metric are finite."""
        return math.isfinite(self.least) and math.isfinite(self.most)


_MOST_FACTORS = 12
"""Largest number of arms whose sums of factors are computed; there are 2 to this power."""
_ROUNDING = 1e-9
"""Sums of factors below this value are zero but for rounding."""
_MOST_EFFECTIVE = 1e8
"""Largest effective number of items. Above it, the incomplete beta function loses precision."""

ANY = Measure()
"""Measure of a metric without bounds that is no fraction; also used if the measure is unknown."""


def smallest_step(factors: Sequence[float]) -> float:
    """Return the smallest positive amount by which one item can change a weighted sum of arms.

    An item counts 0 or 1 in each arm, so it contributes a sum of some of the factors. The result is
    at most 1. For more than 12 arms it is 0, a lower limit that is always right, because the sums
    would be too many to compute.

    Example:
        >>> smallest_step((1, -1)), smallest_step((1, -10)), smallest_step((1, -0.5))
        (1.0, 1.0, 0.5)
    """
    if len(factors) > _MOST_FACTORS:
        return 0.0
    sums = (abs(math.fsum(part)) for part in itertools.product(*((0.0, f) for f in factors)))
    return min([1.0, *(one for one in sums if one > _ROUNDING)])


def least_variance(mean: float, size: int, *, step: float | None = None) -> float:
    """Return a lower limit for the variance over seeds of a metric that is a fraction of N items.

    The metric is that of one run, or the difference of two runs; an item is for example a test
    image. The observed variance of few seeds can be smaller by chance. For a fraction p, the limit
    is the sampling variance p (1 - p) / N. For a difference d it is |d| / N: two runs whose
    fractions differ by d disagree on at least N |d| of the same items (McNemar 1947). For a
    weighted sum, in which an item contributes 0 or at least s in absolute value, it is s |d| / N.
    p (1 - p) is taken as at least 1 / N, and |d| as at least s / N.
    """
    if step is None:
        share = max(0.0, min(1.0, mean)) * (1 - min(1.0, mean))
        return max(share, 1 / size) / size
    return step * max(abs(mean), step / size) / size


def share_limits(
    mean: float, sd: float, n: int, measure: Measure, confidence: float
) -> tuple[float, float]:
    """Return the exact interval (Clopper-Pearson) of the mean over seeds of a bounded metric.

    The mean is treated as a fraction of an effective number of items, such as images. With N items
    and n seeds, that number is N n if seeds vary no more than by sampling. It is smaller if they
    vary more, because items of one seed are correlated (Korn and Graubard 1998, Survey Methodology
    24). If the metric is no fraction of counted items, the number follows from the spread over
    seeds; without a spread, each seed counts as one item. A correlation without spread over seeds
    (such as all 6 classes correct in each of 10 seeds) is not detected.
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
        spread = min(1e150, width / sd)  # its square must not overflow
        seeds = n * share * (1 - share) * spread**2 * (many / few) ** 2
        effective = min(_MOST_EFFECTIVE if measure.size is None else effective, seeds)
    found = share * effective
    low = float(special.betaincinv(found, effective - found + 1, tail)) if found > 0 else 0.0
    rest = effective - found
    high = float(special.betaincinv(found + 1, rest, 1 - tail)) if rest > 0 else 1.0
    return measure.least + width * low, measure.least + width * high
