"""Equivalence: probabilities that a difference lies below, within or above a margin."""

import math
from dataclasses import dataclass

from scipy import special

from reports.numbers.comparison import Comparison


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Probabilities that the true mean difference is below, within or above a margin.

    They add up to 1.
    """

    below: float
    """Probability that the difference is less than minus the margin."""
    within: float
    above: float
    """Probability that the difference is more than the margin."""


def equivalence(comparison: Comparison, margin: float) -> Equivalence | None:
    """Return the probabilities that the true difference is below, within or above a margin.

    The differences are taken as independent and normal, with a flat prior on the mean and on the
    logarithm of the sd. The posterior of the mean is then Student t with n - 1 degrees of freedom
    around the observed mean, scaled by sd / sqrt(n). If the sampling noise of the test images is
    larger than the sd, it replaces the sd.

    Source: Benavoli et al. 2017, Time for a change, JMLR 18(77), section 4, with correlation 0,
    because seeds are independent, unlike folds.

    Args:
        comparison: Paired differences.
        margin: Half the width of the region that counts as no difference, positive, in the unit of
            the metric.

    Returns:
        The probabilities; None at n = 1, or if the sd of the differences is unknown.
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
