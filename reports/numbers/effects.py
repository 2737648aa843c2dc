"""Effects: standardised differences, and the difference that n seeds can detect."""

import math

from scipy import special

from reports.numbers.summary import CONFIDENCE

POWER = 0.8
"""Power (probability of a significant result) at which a difference counts as detectable."""


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


def chi_square_quantile(level: float, freedom: int) -> float:
    """Return the quantile of the chi-square distribution with `freedom` degrees of freedom."""
    return 2 * float(special.gammaincinv(freedom / 2, level))
