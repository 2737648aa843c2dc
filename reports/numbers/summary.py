"""Summary: mean, standard deviation and interval of a metric over the seeds of one arm."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from scipy import special

from reports.numbers.shares import ANY, Measure, share_limits

CONFIDENCE = 0.95
"""Confidence of every interval. The error level of every test is 1 minus this."""

SUMMARY_COLUMNS = ("mean", "sd", "ci_low", "ci_high")
"""Columns of a `Summary`; in files, each follows the name of its metric."""

ROUNDING = 1e-12
"""A spread below this fraction of the values is attributed to rounding."""

_ROOT_BITS = 2 * 55
"""Number of bits of a fraction that are kept, so that its root has two bits more than a float."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Mean, sd and interval of a metric over the seeds of one arm, in the unit of the metric."""

    n: int
    """Number of seeds, at least 1."""
    mean: float
    sd: float | None
    """Sample standard deviation, n - 1 in the denominator; None at n = 1."""
    ci_low: float | None
    """Lower end of the 95 % interval of the mean; None at n = 1 and if the spread is unknown."""
    ci_high: float | None
    """Upper end of that interval; None in the same cases."""

    @property
    def half_width(self) -> float | None:
        """Half the width of the mean's interval; None if that is unknown or not symmetric."""
        if self.ci_low is None or self.ci_high is None:
            return None
        above, below = self.ci_high - self.mean, self.mean - self.ci_low
        return above if math.isclose(above, below, rel_tol=1e-6) else None


@cache
def t_quantile(n: int, confidence: float) -> float:
    """Return half the width of a mean's t interval, in standard errors: 2.78 for n = 5 at 95 %."""
    return float(special.stdtrit(n - 1, (1 + confidence) / 2))


def summarise(values: Sequence[float], measure: Measure = ANY) -> Summary:
    """Return mean, sample sd and t interval of values: `mean +- t(0.975, n - 1) sd / sqrt(n)`.

    If the t interval has no width or exceeds the range of the metric, and this range has two finite
    ends, the exact interval of a fraction replaces it (`reports.numbers.shares.share_limits`). If
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
        return Summary(n=1, mean=centre, sd=None, ci_low=None, ci_high=None)
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
    for metric in last[0] if last else ():
        if all(metric in metrics for metrics in last):
            summary = summarise([metrics[metric] for metrics in last], measure_of(metric))
            numbers |= {f"{metric}_{name}": getattr(summary, name) for name in SUMMARY_COLUMNS}
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
    if shift < 0:
        above <<= -2 * shift
    else:
        below <<= 2 * shift
    root = math.isqrt(above // below)
    root |= root * root * below != above
    return float(root << shift) if shift >= 0 else root / (1 << -shift)
