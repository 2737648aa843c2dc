"""Comparison: the difference of two arms, or a weighted sum of arms, paired by seed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

# `scipy.stats` uses these functions too, but takes four times as long to import.
from scipy import special

from reports.numbers.summary import (
    ANY,
    CONFIDENCE,
    ROUNDING,
    Measure,
    least_variance,
    share_limits,
    smallest_step,
    summarise,
    t_quantile,
)

MIN_SEEDS_SIGN_FLIP = 6
"""Smallest number of seeds for the sign-flip test. With fewer, its smallest possible two-sided p, 2
/ 2^n, exceeds 0.05.
"""

MAX_SEEDS_SIGN_FLIP = 20
"""Largest number of seeds for the sign-flip test, which has to count all 2^n sign patterns."""

_LEAST_LEVEL = 1e-12
"""Smallest error level that is returned; still smaller ones are reported as this."""

_LEAST_CONFIDENCE = 1e-6
"""An interval of lower confidence is treated as a single point."""

_LEVEL_DIGITS = 1e-9
"""Precision of the bisection over the logarithm of an error level."""

_LARGEST_T = 1e4
"""Largest t for which the noncentral t distribution is inverted. Above it, the interval of the
effect is unbounded.
"""


class IncompleteStudyError(ValueError):
    """Two arms cannot be paired by seed, because one arm lacks a seed of the other arm."""


Term = tuple[float, Mapping[int, float], Measure]
"""Factor of an arm, its values by seed, and the possible range of its metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightedArm:
    """One arm of a comparison: factor in the weighted sum of arms, mean and sd over seeds."""

    factor: float
    mean: float
    sd: float
    measure: Measure


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A comparison of arms at equal seeds: a weighted sum of their values.

    In the simplest case, this is one arm minus the baseline.

    Fields that need the spread over seeds, such as p and intervals, are None if there is one seed,
    or two seeds with equal differences. They are also None if all differences are equal up to
    rounding and the possible values of the metric have no finite range.
    """

    n: int
    difference: float
    sd: float | None
    """Sample standard deviation of the differences over the seeds; None at n = 1."""
    spread: float | None
    """Standard deviation used for intervals: `sd`, or the sampling noise of the test images if that
    is larger and known (`reports.numbers.summary.least_variance`).
    """
    sides: tuple[WeightedArm, ...] = ()
    is_exact: bool = False
    """True if the interval uses exact limits of fractions, because a t interval would have no width
    or exceed the bounds of the metric.
    """
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    """Two-sided p value, not adjusted for other comparisons."""
    effect: float | None = None
    """Standardised difference (Hedges' g): mean / `spread`, times `hedges_factor`."""
    effect_low: float | None = None
    """Lower end of the 95 % interval of the standardised difference, from the noncentral t."""
    effect_high: float | None = None
    sign_flip_p: float | None = None
    """Two-sided p of the exact sign-flip test, for 6 to 20 seeds; None for fewer or more."""

    @property
    def is_constant(self) -> bool:
        """True if the differences at several seeds are equal, and so no interval is possible."""
        return self.n > 1 and self.spread is None and not self.is_exact

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest difference of the arms that the metric's range allows."""
        ends = [
            sorted((side.factor * side.measure.least, side.factor * side.measure.most))
            for side in self.sides
        ]
        return sum(end[0] for end in ends), sum(end[1] for end in ends)

    @property
    def value(self) -> float:
        """The number that a claim is about: the difference."""
        return self.difference

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the confidence interval of the arms' mean difference; None if it is unknown."""
        if self.is_exact:
            return self._exact_interval(confidence)
        if self.spread is None:
            return None
        half = t_quantile(self.n, confidence) * self.spread / math.sqrt(self.n)
        least, most = self.bounds
        return max(least, self.difference - half), min(most, self.difference + half)

    def _exact_interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval that follows from exact limits of each arm."""
        per_arm = 1 - (1 - confidence) / len(self.sides)
        low = high = 0.0
        for side in self.sides:
            limits = share_limits(side.mean, side.sd, self.n, side.measure, per_arm)
            ends = sorted(side.factor * limit for limit in limits)
            low, high = low + ends[0], high + ends[1]
        return low, high

    def effect_interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the interval of the standardised difference (Hedges' g) at a given confidence."""
        if self.effect is None or self.spread is None:
            return None
        t = self.difference * math.sqrt(self.n) / self.spread
        return effect_interval(t, self.n, confidence)

    def level(self, is_decided: Callable[[float, float], bool]) -> float | None:
        """Return a claim's p value: the smallest error level at which the interval decides it.

        The interval is that of the arms' mean difference, with confidence 1 - error level. The
        result is None if it is unknown.
        """
        if self.interval(CONFIDENCE) is None:
            return None

        def decides(log_level: float) -> bool:
            interval = self.interval(1 - math.exp(log_level))
            assert interval is not None
            return is_decided(*interval)

        low, high = math.log(_LEAST_LEVEL), math.log1p(-_LEAST_CONFIDENCE)
        if not decides(high):
            return 1.0
        if decides(low):
            return _LEAST_LEVEL
        while high - low > _LEVEL_DIGITS:
            middle = (low + high) / 2
            low, high = (low, middle) if decides(middle) else (middle, high)
        return math.exp(high)


def compare(
    arm: Mapping[int, float],
    baseline: Mapping[int, float],
    ours: Measure = ANY,
    theirs: Measure = ANY,
) -> Comparison:
    """Return the comparison of an arm with another arm at the same seeds."""
    if arm.keys() != baseline.keys():
        raise IncompleteStudyError(
            "arm and baseline must have the same seeds, got "
            f"(missing from arm={sorted(baseline.keys() - arm.keys())}, "
            f"missing from baseline={sorted(arm.keys() - baseline.keys())})."
        )
    return contrast([(1.0, arm, ours), (-1.0, baseline, theirs)])


def over_shared(terms: Sequence[Term]) -> Comparison | None:
    """Return the comparison of arms (`contrast`) over the seeds that all have; None without any."""
    seeds = set.intersection(*(set(by_seed) for _, by_seed, _ in terms))
    if not seeds:
        return None
    return contrast([(f, {seed: of[seed] for seed in seeds}, measure) for f, of, measure in terms])


def contrast(terms: Sequence[Term]) -> Comparison:
    """Return the comparison of arms with the same seeds: a weighted sum of their values."""
    # Frozen: intervals and p values, which published tables repeat;
    # tests/reports/test_recomputed.py fails.
    (_, first, _), *_ = terms
    seeds = sorted(first)
    values = [[factor * by_seed[seed] for factor, by_seed, _ in terms] for seed in seeds]
    differences = [sum(row) for row in values]
    summary = summarise(differences)
    n, difference = summary.n, summary.mean
    if summary.sd is None:
        return Comparison(n=n, difference=difference, sd=None, spread=None)
    rounding = ROUNDING * max(abs(value) for row in values for value in row)
    if summary.sd <= rounding and abs(difference) <= rounding:
        difference = 0.0
    spread = summary.sd if summary.sd > rounding else 0.0
    is_equal_pair = n == 2 and not spread
    if not is_equal_pair:
        spread = max(spread, math.sqrt(_counting_variance(terms, difference)))
    sides = tuple(
        WeightedArm(factor=factor, mean=summary.mean, sd=summary.sd or 0.0, measure=measure)
        for factor, by_seed, measure in terms
        for summary in (summarise([by_seed[seed] for seed in seeds]),)
    )
    comparison = Comparison(
        n=n,
        difference=difference,
        sd=summary.sd,
        spread=spread or None,
        sides=sides,
        sign_flip_p=_sign_flip_p(differences),
    )
    half = t_quantile(n, CONFIDENCE) * spread / math.sqrt(n)
    least, most = comparison.bounds
    is_outside = difference - half < least or difference + half > most
    can_be_exact = all(measure.is_bounded for _, _, measure in terms) and not is_equal_pair
    if (not spread or is_outside) and can_be_exact:
        comparison = replace(comparison, is_exact=True)
        low, high = comparison.interval(CONFIDENCE) or (None, None)
        p = comparison.level(lambda low, high: not low <= 0 <= high)
        return replace(comparison, ci_low=low, ci_high=high, p=p)
    if not spread:
        return comparison
    low, high = comparison.interval(CONFIDENCE) or (None, None)
    t = difference * math.sqrt(n) / spread
    has_effect = n >= 3 and abs(t) <= _LARGEST_T
    effect_low, effect_high = effect_interval(t, n) if has_effect else (None, None)
    return replace(
        comparison,
        ci_low=low,
        ci_high=high,
        p=2 * float(special.stdtr(n - 1, -abs(t))),
        effect=t / math.sqrt(n) * hedges_factor(n) if has_effect else None,
        effect_low=effect_low,
        effect_high=effect_high,
    )


def _counting_variance(terms: Sequence[Term], total: float) -> float:
    """Return the least variance over seeds of a weighted sum of fractions; 0 if it is unknown."""
    sizes = [measure.size for _, _, measure in terms if measure.size is not None]
    if len(sizes) < len(terms):
        return 0.0
    if len(terms) == 1:
        ((factor, _, _),) = terms
        return factor**2 * least_variance(total / factor, min(sizes))
    step = smallest_step([factor for factor, _, _ in terms])
    return least_variance(total, min(sizes), step=step)


def _sign_flip_p(differences: Sequence[float]) -> float | None:
    if not MIN_SEEDS_SIGN_FLIP <= len(differences) <= MAX_SEEDS_SIGN_FLIP:
        return None
    sums = np.array([0.0])
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    # The first sum has the observed signs. Equal sums may differ in their last bits.
    at_least = np.abs(sums) >= abs(sums[0]) - 1e-12 * np.abs(differences).sum()
    return float(np.mean(at_least))


def hedges_factor(n: int) -> float:
    """Return the factor that removes the bias of mean / sd of n differences: 0.80 at n = 5.

    With f = n - 1 degrees of freedom: gamma(f / 2) / (sqrt(f / 2) gamma((f - 1) / 2)).

    Source: Hedges 1981, Distribution theory for Glass's estimator of effect size.
    """
    half = (n - 1) / 2
    return math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)


def effect_interval(t: float, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of the standardised mean difference (mean / sd), from a paired t.

    The true standardised difference times sqrt(n) is the noncentrality of the t distribution. At
    95 %, the lower end is the difference for which `t` is the 97.5 % quantile, the upper end the
    one for which it is the 2.5 % quantile. Hedges' factor is not applied. The interval excludes
    zero exactly if the t interval of the same level does.
    """
    tail = (1 - confidence) / 2
    low, high = (
        float(special.nctdtrinc(n - 1, level, t)) / math.sqrt(n) for level in (1 - tail, tail)
    )
    return low, high


MIN_SEEDS_VARIANCE = 3
"""Smallest number of seeds: one is left out, and a variance needs two."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio(Comparison):
    """A ratio of two variances; `difference`, `sd` and their like are of its logarithm."""

    @property
    def value(self) -> float:
        """The ratio of the variances, corrected for bias by the jackknife."""
        return math.exp(self.difference)

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the confidence interval of the ratio; None if it is unknown."""
        ends = Comparison.interval(self, confidence)
        return None if ends is None else (math.exp(ends[0]), math.exp(min(ends[1], 700.0)))


def ratio_of_variances(left: Mapping[int, float], right: Mapping[int, float]) -> Comparison | None:
    """Return the ratio of the variances of two arms over the same seeds, paired by seed.

    It is Miller's jackknife of the logarithm (Miller 1968), which needs no normal values: an F
    interval is wrong if the values have heavy tails or the arms are correlated.

    The result is None with fewer than three seeds, or if all values of an arm but one are equal.
    """
    parts = [_pseudo_values(values) for values in (left, right)]
    if not all(parts):
        return None
    comparison = contrast([(1.0, parts[0], ANY), (-1.0, parts[1], ANY)])
    return Ratio(**{name: getattr(comparison, name) for name in Comparison.__dataclass_fields__})


def _pseudo_values(values: Mapping[int, float]) -> dict[int, float]:
    """Return the jackknife's pseudo-values of the log variance by seed; empty if it is unknown."""
    seeds, n = sorted(values), len(values)
    if n < MIN_SEEDS_VARIANCE:
        return {}
    numbers = np.array([values[seed] for seed in seeds])
    without = np.array([np.delete(numbers, place).var(ddof=1) for place in range(n)])
    if without.min() <= (ROUNDING * np.abs(numbers).max()) ** 2:
        return {}
    pseudo = n * np.log(numbers.var(ddof=1)) - (n - 1) * np.log(without)
    return dict(zip(seeds, pseudo.tolist(), strict=True))
