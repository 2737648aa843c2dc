"""Spread: split the spread of the error over seeds into noise of the test images and the rest."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reports.numbers.effects import chi_square_quantile
from reports.numbers.summary import CONFIDENCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The spread of the error over seeds, split into noise of the test images and the rest.

    Errors are fractions.
    """

    n: int
    """Number of seeds."""
    images: int
    total: float
    """Standard deviation on these test images."""
    total_low: float | None
    """Lower end of the 95 % interval of `total`. Both ends are None if all seeds have the same
    error.
    """
    total_high: float | None
    noise: float
    """Part of `total` that is sampling noise of the finite test set."""
    distribution: float
    """Standard deviation that would remain with infinitely many test images; 0 if noise explains
    all of `total`.
    """
    distribution_low: float | None
    """Lower end of the 95 % interval of `distribution`. Both ends are None if noise explains even
    the upper end of `total`.
    """
    distribution_high: float | None


def sd_interval(sd: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of the true sd, for an sd estimated from n normal values.

    The ends are sd sqrt((n - 1) / q), with q the 97.5 % and the 2.5 % quantile of chi-square with n
    - 1 degrees of freedom. This interval is more sensitive to values that are not normal than the
    interval of a mean is.
    """
    tail = (1 - CONFIDENCE) / 2
    upper, lower = (chi_square_quantile(level, n - 1) for level in (1 - tail, tail))
    return sd * math.sqrt((n - 1) / upper), sd * math.sqrt((n - 1) / lower)


def share_interval(share: float, n: int, n_all: int) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two true variances, from the F distribution."""
    tail = (1 - CONFIDENCE) / 2
    upper, lower = (float(special.fdtri(n - 1, n_all - 1, level)) for level in (1 - tail, tail))
    return share / upper, share / lower


def split_spread(is_wrong: NDArray[np.bool_]) -> Spread:
    """Return the spread of the error over seeds, split into noise of the test images and the rest.

    N is the number of images and s^2 the variance of the error over seeds. Count 1 for an image
    that a run classifies wrongly, otherwise 0; v is the variance of this number over seeds,
    averaged over the images. The sd of the noise and the sd of the rest (`distribution`) follow:

        noise^2 = v / N,    distribution^2 = (s^2 - noise^2) N / (N - 1)

    distribution^2 is an unbiased estimate of the variance that would remain with infinitely many
    test images, however the images depend on each other; a negative estimate is shown as 0. The
    ends of its interval follow from those of s (from chi-square) by the same formula, with v taken
    as known.

    Source: Jordan 2023, arXiv:2304.01910.
    """
    n, images = is_wrong.shape
    wrong = is_wrong.astype(np.float64)
    total = float(is_wrong.sum(1).std(ddof=1)) / images  # of whole numbers, so equal errors give 0
    noise = float(wrong.var(0, ddof=1).mean()) / images
    low, high = sd_interval(total, n)

    def beyond(sd: float) -> float:
        return math.sqrt(max(0.0, sd * sd - noise) * images / (images - 1))

    has_spread, has_more = total > 0, beyond(high) > 0
    return Spread(
        n=n,
        images=images,
        total=total,
        total_low=low if has_spread else None,
        total_high=high if has_spread else None,
        noise=math.sqrt(noise),
        distribution=beyond(total),
        distribution_low=beyond(low) if has_more else None,
        distribution_high=beyond(high) if has_more else None,
    )
