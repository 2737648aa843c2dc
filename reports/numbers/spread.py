"""Spread: how much of the spread of the error over seeds the test images alone make."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reports.numbers.effects import chi_square_quantile
from reports.numbers.summary import CONFIDENCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Standard deviations over seeds of the error, as parts of 1."""

    n: int
    """Number of seeds."""
    images: int
    total: float
    """On these test images."""
    total_low: float
    total_high: float
    noise: float
    """The part made by there being so few test images."""
    distribution: float
    """Part of `total` that infinitely many test images would leave; 0 where noise explains all."""
    distribution_low: float
    distribution_high: float


def sd_interval(sd: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of the true sd behind one estimated from n normal values.

    sd sqrt((n - 1) / q), q the 97.5 % and the 2.5 % quantile of chi-square with n - 1 degrees of
    freedom. It leans on normality more than an interval of a mean does.
    """
    tail = (1 - CONFIDENCE) / 2
    upper, lower = (chi_square_quantile(level, n - 1) for level in (1 - tail, tail))
    return sd * math.sqrt((n - 1) / upper), sd * math.sqrt((n - 1) / lower)


def share_interval(share: float, n: int, n_all: int) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of two variances, from the F distribution.

    Args:
        share: Sample variance of n values over that of n_all others.
        n: Number of values, at least 2.
        n_all: Number of those below the line, at least 2.
    """
    tail = (1 - CONFIDENCE) / 2
    upper, lower = (float(special.fdtri(n - 1, n_all - 1, level)) for level in (1 - tail, tail))
    return share / upper, share / lower


def split_spread(is_wrong: NDArray[np.bool_]) -> Spread:
    """Return the spread of the error over seeds, split into noise of the test images and the rest.

    With N images, s^2 the variance of the error over seeds and v that of an image, averaged:

        noise^2 = v / N,    distribution^2 = (s^2 - v / N) N / (N - 1)

    The second is unbiased for the variance of the error on the distribution that the test images
    are drawn from, whatever images have in common; where it is negative, 0 is shown. Its interval
    is that of s, from chi-square, less the noise, which so many images estimate well.

    Source: Jordan 2023, arXiv:2304.01910.

    Args:
        is_wrong: (seeds, images), at least two of each.
    """
    n, images = is_wrong.shape
    wrong = is_wrong.astype(np.float64)
    total = float(wrong.mean(1).std(ddof=1))
    noise = float(wrong.var(0, ddof=1).mean()) / images
    low, high = sd_interval(total, n)

    def beyond(sd: float) -> float:
        return math.sqrt(max(0.0, sd * sd - noise) * images / (images - 1))

    return Spread(
        n=n,
        images=images,
        total=total,
        total_low=low,
        total_high=high,
        noise=math.sqrt(noise),
        distribution=beyond(total),
        distribution_low=beyond(low),
        distribution_high=beyond(high),
    )
