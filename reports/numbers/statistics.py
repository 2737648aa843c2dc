"""Statistics over seeds: intervals, paired comparisons, multiplicity, effect sizes and power."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

# The distributions of `scipy.stats` are made of these, and it takes four times as long to load.
from scipy import special

from reports.numbers.shares import ANY, Measure, least_variance, share_limits

CONFIDENCE = 0.95
"""Level of every interval; its complement is the level of every test."""

SUMMARY_COLUMNS = ("mean", "sd", "ci_low", "ci_high")
"""Columns of a `Summary`; each name follows that of its metric."""

POWER = 0.8
"""A difference counts as detectable if it is found this often."""

MIN_SEEDS_SIGN_FLIP = 6
"""With fewer seeds the smallest two-sided p, 2 / 2^n, is above 0.05 whatever the data."""

MAX_SEEDS_SIGN_FLIP = 20
"""All 2^n sign patterns are counted, so the exact test ends here."""

_ROUNDING = 1e-12
"""A spread below this part of the values themselves is rounding, not spread."""

_ROOT_BITS = 2 * 55
"""Bits of a fraction whose root has two bits more than a float."""

_LEAST_LEVEL = 1e-12
"""Error levels are not told apart below it."""

_LEAST_CONFIDENCE = 1e-6
"""An interval of less is a point."""

_LEVEL_DIGITS = 1e-9
"""Precision of the logarithm of a level in a search."""

_LARGEST_T = 1e4
"""Beyond it the noncentral t is not inverted: the effect is without bound for all purposes."""


class IncompleteStudyError(ValueError):
    """Arms were to be paired by seed, and a seed is missing from one of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """One metric of one arm over its seeds, in the unit of the metric."""

    n: int
    """Number of seeds, at least 1."""
    mean: float
    sd: float | None
    """Sample standard deviation, n - 1 in the denominator; None at n = 1."""
    ci_low: float | None
    """Lower end of the 95 % interval of the mean; None at n = 1 and where no spread is known."""
    ci_high: float | None
    """Upper end, likewise."""

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval; None without one, or if the mean is not its middle."""
        if self.ci_low is None or self.ci_high is None:
            return None
        above, below = self.ci_high - self.mean, self.mean - self.ci_low
        return above if math.isclose(above, below, rel_tol=1e-6) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Probabilities of the true mean difference, which add up to 1."""

    below: float
    """Probability that the difference is less than minus the margin."""
    within: float
    above: float
    """Probability that the difference is more than the margin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightedArm:
    """One arm of a comparison: by what it is multiplied, and its values over the shared seeds."""

    factor: float
    mean: float
    sd: float
    measure: Measure


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A weighted sum of arms minus a number, paired by seed: arm minus baseline, for example.

    What needs a spread is None at n = 1, at two equal values, and where the values of all seeds are
    equal but for rounding though nothing says how finely they are counted.
    """

    n: int
    """Number of shared seeds, at least 1."""
    difference: float
    """Mean over the seeds, in the unit of the metric."""
    sd: float | None
    """Sample standard deviation over the seeds, as observed; None at n = 1."""
    spread: float | None
    """The standard deviation that intervals use: `sd`, or what counting makes at least
    (`reports.numbers.shares.least_variance`)."""
    sides: tuple[WeightedArm, ...]
    number: float
    """The number that is subtracted."""
    is_exact: bool
    """True if limits of shares are used, as the t interval leaves the bounds or has no width."""
    ci_low: float | None
    """Lower end of the 95 % interval of the mean difference."""
    ci_high: float | None
    p: float | None
    """Two-sided, unadjusted: the level at which the interval ends at zero."""
    effect: float | None
    """Hedges' g of the differences: mean over `spread` times `hedges_factor`. None below n = 3,
    where the factor is not defined, and without a t interval."""
    effect_low: float | None
    """Lower end of the 95 % interval of the standardised difference, from the noncentral t."""
    effect_high: float | None
    sign_flip_p: float | None
    """Two-sided p of the exact sign-flip test, for 6 to 20 seeds, else None."""

    @property
    def is_constant(self) -> bool:
        """True if the values of two seeds or more are all equal and no interval is known."""
        return self.n > 1 and self.spread is None and not self.is_exact

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that the difference can have."""
        ends = [
            sorted((side.factor * side.measure.least, side.factor * side.measure.most))
            for side in self.sides
        ]
        return sum(end[0] for end in ends) - self.number, sum(end[1] for end in ends) - self.number

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the interval of the mean difference at a level in (0, 1), within its bounds."""
        if self.is_exact:
            return self._exact_interval(confidence)
        if self.spread is None:
            return None
        half = t_quantile(self.n, confidence) * self.spread / math.sqrt(self.n)
        least, most = self.bounds
        return max(least, self.difference - half), min(most, self.difference + half)

    def _exact_interval(self, confidence: float) -> tuple[float, float]:
        """Return the sum of the limits of each side, each at its part of the error."""
        each = 1 - (1 - confidence) / len(self.sides)
        low = high = -self.number
        for side in self.sides:
            limits = share_limits(side.mean, side.sd, self.n, side.measure, each)
            ends = sorted(side.factor * limit for limit in limits)
            low, high = low + ends[0], high + ends[1]
        return low, high

    def effect_interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the interval of the standardised difference; None where `effect` is None."""
        if self.effect is None or self.spread is None:
            return None
        t = self.difference * math.sqrt(self.n) / self.spread
        return effect_interval(t, self.n, confidence)

    def level(self, is_decided: Callable[[float, float], bool]) -> float | None:
        """Return the smallest error level at whose interval something is decided; None without one.

        Args:
            is_decided: Of the two ends of an interval; an interval inside a decided one is decided.
        """
        if self.interval(CONFIDENCE) is None:
            return None

        def decides(log_level: float) -> bool:
            found = self.interval(1 - math.exp(log_level))
            assert found is not None
            return is_decided(*found)

        low, high = math.log(_LEAST_LEVEL), math.log1p(-_LEAST_CONFIDENCE)
        if not decides(high):
            return 1.0
        if decides(low):
            return _LEAST_LEVEL
        while high - low > _LEVEL_DIGITS:
            middle = (low + high) / 2
            low, high = (low, middle) if decides(middle) else (middle, high)
        return math.exp(high)


@cache
def t_quantile(n: int, confidence: float) -> float:
    """Return half the width of a t interval over n values, in standard errors of their mean."""
    return float(special.stdtrit(n - 1, (1 + confidence) / 2))


def summarise(values: Sequence[float], measure: Measure = ANY) -> Summary:
    """Return mean, sample sd and the t interval `mean +- t(0.975, n - 1) sd / sqrt(n)`.

    Where that interval has no width or leaves the bounds of the metric, it is the exact one of a
    share (`reports.numbers.shares.share_limits`); where nothing bounds the metric, there is none.

    The interval leans on near-normal seeds: at n = 5 it covers 93 % for uniform noise and 88 %
    for exponential. Mean and sd are correctly rounded, so the order of the values is no matter.

    Args:
        values: One per seed.
        measure: What they can be.

    Raises:
        ValueError: If there is no value, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"values must be finite, at least one, got ({values=}).")
    centre, sd, n = *_moments([float(value) for value in values]), len(values)
    if sd is None:
        return Summary(n=1, mean=centre, sd=None, ci_low=None, ci_high=None)
    half = t_quantile(n, CONFIDENCE) * sd / math.sqrt(n)
    low: float | None = centre - half
    high: float | None = centre + half
    has_spread = sd > _ROUNDING * max(map(abs, values))
    is_inside = measure.least <= centre - half and centre + half <= measure.most
    if measure.is_bounded and not (has_spread and is_inside):
        low, high = share_limits(centre, sd if has_spread else 0.0, n, measure, CONFIDENCE)
    elif not has_spread:
        low = high = None
    elif not is_inside:
        low, high = max(measure.least, centre - half), min(measure.most, centre + half)
    return Summary(n=n, mean=centre, sd=sd, ci_low=low, ci_high=high)


def prediction_interval(summary: Summary, seeds: int) -> tuple[float, float] | None:
    """Return where the mean of so many further seeds lies with 95 %; None at n = 1.

    `mean +- t(0.975, n - 1) sd sqrt(1 / n + 1 / seeds)`, for normal seeds of the same arm: at one
    seed and n = 5 it is 2.4 times as wide as the interval of the mean, at many it is that.

    Args:
        summary: Of the seeds known.
        seeds: At least 1.

    Raises:
        ValueError: If there is no further seed.
    """
    if seeds < 1:
        raise ValueError(f"`seeds >= 1` must hold, got ({seeds=}).")
    if summary.sd is None:
        return None
    half = t_quantile(summary.n, CONFIDENCE) * summary.sd * math.sqrt(1 / summary.n + 1 / seeds)
    return summary.mean - half, summary.mean + half


def summarise_runs(last: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return mean, sd and interval of the metrics of complete runs of one arm.

    Args:
        last: Metrics of the last epoch of each run.

    Returns:
        `test/error_mean`, `_sd`, `_ci_low`, `_ci_high`, and so on for every metric that all runs
        have; the mean alone at n = 1.
    """
    numbers: dict[str, float | None] = {}
    for metric in last[0] if last else ():
        if all(metric in metrics for metrics in last):
            summary = summarise([metrics[metric] for metrics in last])
            numbers |= {f"{metric}_{name}": getattr(summary, name) for name in SUMMARY_COLUMNS}
    return {name: value for name, value in numbers.items() if value is not None}


def compare(
    arm: Mapping[int, float],
    baseline: Mapping[int, float] | float,
    ours: Measure = ANY,
    theirs: Measure = ANY,
) -> Comparison:
    """Return the paired comparison of two arms over the same seeds, or of an arm and a number.

    Args:
        arm: Seed to value.
        baseline: Seed to value, for the same seeds; or the number.
        ours: What values of the arm can be.
        theirs: What values of the baseline can be.

    Raises:
        IncompleteStudyError: If a seed is missing from either side; the text names each.
        ValueError: If there is no seed, or a value is not finite.
    """
    if not isinstance(baseline, Mapping):
        return contrast([(1.0, arm, ours)], float(baseline))
    if arm.keys() != baseline.keys():
        raise IncompleteStudyError(
            "arm and baseline must have the same seeds, got "
            f"(missing from arm={sorted(baseline.keys() - arm.keys())}, "
            f"missing from baseline={sorted(arm.keys() - baseline.keys())})."
        )
    return contrast([(1.0, arm, ours), (-1.0, baseline, theirs)])


def contrast(
    terms: Sequence[tuple[float, Mapping[int, float], Measure]], number: float = 0.0
) -> Comparison:
    """Return a weighted sum of arms minus a number, paired by seed.

    Args:
        terms: Factor, seed to value, and what values can be, of each arm; all with the same seeds.
        number: What is subtracted.

    Raises:
        ValueError: If there is no seed, or a value is not finite.
    """
    seeds = sorted(terms[0][1])
    values = [[factor * by_seed[seed] for seed in seeds] for factor, by_seed, _ in terms]
    every = [*values, [-number] * len(seeds)] if number else values
    differences = [sum(column) for column in zip(*every, strict=True)]
    summary = summarise(differences)
    n, difference = summary.n, summary.mean
    if summary.sd is None:
        return Comparison(
            n=n, difference=difference, sd=None, spread=None, sides=(), number=number,
            is_exact=False, ci_low=None, ci_high=None, p=None, effect=None, effect_low=None,
            effect_high=None, sign_flip_p=None,
        )  # fmt: skip
    rounding = _ROUNDING * max(abs(value) for row in every for value in row)
    if summary.sd <= rounding and abs(difference) <= rounding:
        difference = 0.0
    spread = summary.sd if summary.sd > rounding else 0.0
    is_equal_pair = n == 2 and spread == 0
    sizes = [measure.size for _, _, measure in terms]
    if all(size is not None for size in sizes) and not is_equal_pair:
        size = min(size for size in sizes if size is not None)
        is_one = len(terms) == 1
        counted = difference + number if is_one else difference
        spread = max(spread, math.sqrt(least_variance(counted, size, is_difference=not is_one)))
    sides = tuple(
        WeightedArm(factor=factor, mean=own.mean, sd=own.sd or 0.0, measure=measure)
        for factor, by_seed, measure in terms
        for own in (summarise([by_seed[seed] for seed in seeds]),)
    )
    found = Comparison(
        n=n, difference=difference, sd=summary.sd, spread=spread or None, sides=sides,
        number=number, is_exact=False, ci_low=None, ci_high=None, p=None, effect=None,
        effect_low=None, effect_high=None, sign_flip_p=_sign_flip_p(differences),
    )  # fmt: skip
    half = t_quantile(n, CONFIDENCE) * spread / math.sqrt(n)
    least, most = found.bounds
    is_outside = difference - half < least or difference + half > most
    can_be_exact = all(measure.is_bounded for _, _, measure in terms) and not is_equal_pair
    if (spread == 0 or is_outside) and can_be_exact:
        found = replace(found, is_exact=True)
        low, high = found.interval(CONFIDENCE) or (None, None)
        p = found.level(lambda low, high: not low <= 0 <= high)
        return replace(found, ci_low=low, ci_high=high, p=p)
    if spread == 0:
        return found
    low, high = found.interval(CONFIDENCE) or (None, None)
    t = difference * math.sqrt(n) / spread
    has_effect = n >= 3 and abs(t) <= _LARGEST_T
    effect_low, effect_high = effect_interval(t, n) if has_effect else (None, None)
    return replace(
        found,
        ci_low=low,
        ci_high=high,
        p=2 * float(special.stdtr(n - 1, -abs(t))),
        effect=t / math.sqrt(n) * hedges_factor(n) if has_effect else None,
        effect_low=effect_low,
        effect_high=effect_high,
    )


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p values, in the order given; the family is all of `ps`.

    Sorted upwards, the i-th smallest of m (i from 0) is multiplied by m - i; a running maximum
    keeps the order and 1 is the ceiling.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    adjusted = [0.0] * len(ps)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = reached
    return tuple(adjusted)


def expected_lowest(values: Sequence[float]) -> tuple[float, ...]:
    """Return the mean lowest of n of some values, over all choices of n, for n from 1 to all.

    Of N values in rising order the i-th, i from 1, is the lowest of n in C(N - i, n - 1) of
    C(N, n) choices. It is what a search by n random points finds on average; of points proposed
    one after the other it says nothing.

    Source: Dodge et al. 2019, arXiv:1909.03004, section 3; drawn without replacement, as Tang et
    al. 2020, arXiv:2004.13705, propose.
    """
    rising, total = sorted(values), len(values)
    return tuple(
        sum(
            value * math.comb(total - place, n - 1) / math.comb(total, n)
            for place, value in enumerate(rising, 1)
        )
        for n in range(1, total + 1)
    )


def hedges_factor(n: int) -> float:
    """Return the factor that makes mean / sd of n differences unbiased: 0.80 at n = 5.

    With f = n - 1 degrees of freedom: gamma(f / 2) / (sqrt(f / 2) gamma((f - 1) / 2)).

    Source: Hedges 1981, Distribution theory for Glass's estimator of effect size.

    Args:
        n: Number of seeds, at least 3.
    """
    half = (n - 1) / 2
    return math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)


def effect_interval(t: float, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of the standardised mean difference behind a paired t statistic.

    The ends are the noncentralities under which t is the upper and the lower quantile (97.5 % and
    2.5 % at 95 %), over sqrt(n). The interval is of the true effect, so Hedges' factor does not
    enter; it excludes zero exactly where the t interval of the same level does.
    """
    tail = (1 - confidence) / 2
    low, high = (
        float(special.nctdtrinc(n - 1, level, t)) / math.sqrt(n) for level in (1 - tail, tail)
    )
    return low, high


def detectable_difference(n: int, comparisons: int = 1) -> float:
    """Return the paired difference found 4 times in 5, in sd of the differences.

    Two-sided t test at 5 % over `comparisons`. The power comes from the noncentral t; rejecting on
    the wrong side, under one in a million here, is left out. It holds for the true sd: with one
    estimated from n = 5 in its place the power averages 0.69, not 0.8 (`upper_sd`).

    Args:
        n: Number of seeds, at least 2.
        comparisons: Size of the family, at least 1.
    """
    critical = special.stdtrit(n - 1, 1 - (1 - CONFIDENCE) / (2 * comparisons))
    return float(special.nctdtrinc(n - 1, 1 - POWER, critical)) / math.sqrt(n)


def upper_sd(sd: float, n: int) -> float:
    """Return the upper 95 % limit of the true sd behind one estimated from n normal values.

    sd sqrt((n - 1) / q), q the 5 % quantile of chi-square with n - 1 degrees of freedom; one-sided.

    Args:
        sd: Estimated, n - 1 in the denominator.
        n: At least 2.
    """
    return sd * math.sqrt((n - 1) / chi_square_quantile(1 - CONFIDENCE, n - 1))


def chi_square_quantile(level: float, freedom: int) -> float:
    """Return the value below which chi-square with so many degrees of freedom lies so often."""
    return 2 * float(special.gammaincinv(freedom / 2, level))


def equivalence(comparison: Comparison, margin: float) -> Equivalence | None:
    """Return how probable it is that the true difference is below, within or above a margin.

    The posterior of the mean of independent normal differences under the flat prior of its mean and
    log sd: Student t with n - 1 degrees of freedom around the mean, scaled by spread / sqrt(n).

    Source: Benavoli et al. 2017, Time for a change, JMLR 18(77), section 4, with correlation 0:
    seeds are independent, unlike folds.

    Args:
        comparison: Paired differences.
        margin: Half the width of the region that counts as no difference, positive, in the unit of
            the metric.

    Returns:
        None at n = 1 and where nothing is known of the spread.
    """
    if comparison.spread is None:
        return None
    centre = comparison.difference
    scale = comparison.spread / math.sqrt(comparison.n)
    low, high = (
        float(special.stdtr(comparison.n - 1, (-margin - side * centre) / scale))
        for side in (1, -1)
    )
    return Equivalence(below=low, within=max(0.0, 1 - low - high), above=high)


def _moments(values: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and sample standard deviation, both correctly rounded; no deviation at n = 1.

    As the functions of `statistics` do, twenty times as fast: with all values as whole numbers of
    the finest of their last places, sums of them and of their squares are exact.
    """
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
    """Return the square root of a fraction that is not negative, correctly rounded.

    The root of whole numbers has more digits than a float, and its last one is odd where digits are
    left out, so that rounding it once more goes the right way.
    """
    shift = (above.bit_length() - below.bit_length() - _ROOT_BITS) // 2
    if shift < 0:
        above <<= -2 * shift
    else:
        below <<= 2 * shift
    root = math.isqrt(above // below)
    root |= root * root * below != above
    return float(root << shift) if shift >= 0 else root / (1 << -shift)


def _sign_flip_p(differences: Sequence[float]) -> float | None:
    if not MIN_SEEDS_SIGN_FLIP <= len(differences) <= MAX_SEEDS_SIGN_FLIP:
        return None
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    # The first sum has every sign as it was observed. Equal sums may differ in their last bits.
    at_least = np.abs(sums) >= abs(sums[0]) - 1e-12 * np.abs(differences).sum()
    return float(np.mean(at_least))
