"""Summary: mean, sd and interval over the seeds of an arm, and exact intervals of fractions."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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
        """True if the smallest and the largest possible value differ and are finite."""
        return 0 < self.most - self.least < math.inf


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


def sampling_noise(fraction: float, size: int) -> float:
    """Return the standard deviation of a fraction p of N independent items: sqrt(p (1 - p) / N)."""
    return math.sqrt(fraction * (1 - fraction) / size)


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
        return max(mean * (1 - mean), 1 / size) / size
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


CONFIDENCE = 0.95
"""Confidence of every interval. The error level of every test is 1 minus this."""

# Frozen: ends of column names in CSV files, which scripts read by name;
# tests/reports/test_recomputed.py fails.
_COLUMNS = ("mean", "sd", "ci_low", "ci_high")

ROUNDING = 1e-12
"""A spread below this fraction of the values is attributed to rounding."""

_ROOT_BITS = 110
"""Number of bits of a fraction that are kept, so that its root, which has half as many, has two
more than a float."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Mean, sd and interval of a metric over the seeds of one arm, in the unit of the metric."""

    n: int
    mean: float
    sd: float | None
    """Sample standard deviation, n - 1 in the denominator; None at n = 1."""
    ci_low: float | None
    """Lower end of the 95 % interval of the mean; None at n = 1 and if the spread is unknown."""
    ci_high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the width of the mean's interval; None if that is unknown or not symmetric."""
        if self.ci_low is None or self.ci_high is None:
            return None
        above, below = self.ci_high - self.mean, self.mean - self.ci_low
        return above if math.isclose(above, below, rel_tol=1e-6) else None


def summary_columns(metric: str, summary: Summary | None) -> dict[str, float | None]:
    """Return mean, sd and interval as cells of a CSV row, in columns `METRIC_mean` and so on."""
    return {f"{metric}_{name}": getattr(summary, name, None) for name in _COLUMNS}


def numbers_of(summary: Summary | None) -> dict[str, float | None]:
    """Return number of seeds, mean and interval as cells of a CSV row, by column."""
    return {name: getattr(summary, name, None) for name in ("n", "mean", "ci_low", "ci_high")}


@cache
def t_quantile(n: int, confidence: float) -> float:
    """Return half the width of a mean's t interval, in standard errors: 2.78 for n = 5 at 95 %."""
    return float(special.stdtrit(n - 1, (1 + confidence) / 2))


def summarise(values: Sequence[float], measure: Measure = ANY) -> Summary:
    """Return mean, sample sd and t interval of values: `mean +- t(0.975, n - 1) sd / sqrt(n)`.

    If the t interval has no width or exceeds the range of the metric, and this range has two finite
    ends, the exact interval of a fraction replaces it (`reports.numbers.summary.share_limits`). If
    the range has one finite end, the t interval is cut there. If an end is infinite, equal values
    have no interval.

    The t interval assumes nearly normal values: at n = 5 it covers 93 % for uniform noise and 88 %
    for exponential. Mean and sd are correctly rounded, so they do not depend on the order of the
    values.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"a mean needs at least one value, all of them finite, got ({values=}).")
    centre, sd, n = *_moments([float(value) for value in values]), len(values)
    if sd is None:
        return Summary(n=n, mean=centre, sd=None, ci_low=None, ci_high=None)
    half = t_quantile(n, CONFIDENCE) * sd / math.sqrt(n)
    low: float | None = centre - half
    high: float | None = centre + half
    has_spread = sd > ROUNDING * max(map(abs, values))
    is_inside = measure.least <= centre - half and centre + half <= measure.most
    if measure.is_bounded and not (has_spread and is_inside):
        low, high = share_limits(centre, sd if has_spread else 0.0, n, measure, CONFIDENCE)
    elif not has_spread:
        low = high = None
    elif not is_inside:
        low, high = max(measure.least, centre - half), min(measure.most, centre + half)
    return Summary(n=n, mean=centre, sd=sd, ci_low=low, ci_high=high)


def summarise_runs(
    last: Sequence[Mapping[str, float]], measure_of: Callable[[str], Measure] = lambda _: ANY
) -> dict[str, float]:
    """Return mean, sd and interval of every metric over complete runs of one arm."""
    numbers: dict[str, float | None] = {}
    for metric in next(iter(last), ()):
        if all(metric in metrics for metrics in last):
            summary = summarise([metrics[metric] for metrics in last], measure_of(metric))
            numbers |= summary_columns(metric, summary)
    return {name: value for name, value in numbers.items() if value is not None}


def _moments(values: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and sample standard deviation, correctly rounded; the latter is None at n = 1."""
    n = len(values)
    if n == 1:
        return values[0], None
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(below for _, below in ratios)
    whole = [above * (unit // below) for above, below in ratios]
    total = sum(whole)
    squares = n * sum(value * value for value in whole) - total * total
    return total / (n * unit), _root(squares, n * (n - 1) * unit * unit)


def _root(above: int, below: int) -> float:
    """Return the square root of the fraction above / below, correctly rounded."""
    shift = (above.bit_length() - below.bit_length() - _ROOT_BITS) // 2
    up, down = max(shift, 0), max(-shift, 0)
    above, below = above << 2 * down, below << 2 * up
    root = math.isqrt(above // below)
    root |= root * root * below != above
    return (root << up) / (1 << down)


def chi_square_quantile(level: float, freedom: int) -> float:
    """Return the quantile of the chi-square distribution with `freedom` degrees of freedom."""
    return 2 * float(special.gammaincinv(freedom / 2, level))
