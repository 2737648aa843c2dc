"""Spread over seeds: how much of it the test images and each source of randomness cause."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reports.numbers.summary import CONFIDENCE, chi_square_quantile, t_quantile


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The spread of the error over seeds, split into noise of the test images and the rest."""

    n: int
    images: int
    total: float
    total_low: float | None
    """Lower end of the 95 % interval of `total`."""
    total_high: float | None
    noise: float
    distribution: float
    """Standard deviation that would remain with infinitely many test images."""
    distribution_low: float | None
    """Lower end of the 95 % interval of `distribution`."""
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


Array = NDArray[np.float64]

LEAST_CONTEXTS = 3
"""Smallest number of contexts (pairs of draws). With fewer, the jackknife estimates no spread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """Share of a metric's variance caused by one source of randomness, with its 95 % interval."""

    value: float
    """The estimate, moved to 0 or 1 if noise put it outside [0, 1]."""
    estimate: float
    low: float | None
    """Lower end of the 95 % interval. Both ends are None if the jackknife finds no spread."""
    high: float | None


def indices(
    first: Sequence[float], second: Sequence[float], moved: Sequence[float]
) -> tuple[Index, Index]:
    """Return first-order and total variance index (Sobol) of one source of randomness.

    The first-order index is the share of the variance that would vanish, on average, if the source
    were fixed; the total index is the share that would remain if all other sources were fixed.

    Each argument has one value of the metric per context. A context is a pair of random draws, a
    first and a second one, of every source. A is `first`, B is `second` and M is `moved`.

        V = (var A + var B) / 2
        first = mean((B - m) (M - A)) / V, m the mean of A and B
        total = mean((A - M)^2) / (2 V)

    Subtracting m changes no expectation but removes noise: without it, the mean of the metric would
    inflate the variance of the estimate. Intervals are from the jackknife over contexts, with
    quantiles of Student's t with n - 1 degrees of freedom. An index lies in [0, 1]. An estimate
    outside is replaced by the nearer end. Its interval is shifted by the same amount and then cut
    at 0 and 1. It never becomes empty, and it covers the index at least as often as before.

    Source: Saltelli et al. 2010, Computer Physics Communications 181, table 2 (b) and (f); (f) is
    of Jansen 1999. Intervals of a bounded number: Mandelkern and Schultz 2000, Journal of
    Mathematical Physics 41.
    """
    a, b, m = (np.asarray(values, np.float64) for values in (first, second, moved))
    n = len(a)
    if n < LEAST_CONTEXTS:
        raise ValueError(
            f"variance indices need at least {LEAST_CONTEXTS} contexts (pairs of draws of all "
            f"sources), got {n}."
        )
    if np.ptp(np.concatenate([a, b])) == 0:
        raise ValueError(
            f"variance indices need a metric that varies, got {a[0]} from every run that has the "
            "first, or the second, draw of all sources."
        )
    estimates = _estimates(a, b, m)
    kept = ~np.eye(n, dtype=bool)
    a, b, m = (np.broadcast_to(x, (n, n))[kept].reshape(n, n - 1) for x in (a, b, m))
    without = _estimates(a, b, m)
    spread = np.sqrt((n - 1) / n * np.square(without - without.mean(1)[:, None]).sum(1))
    half = t_quantile(n, CONFIDENCE) * spread
    of_first, of_total = (
        _index(float(value), float(width)) for value, width in zip(estimates, half, strict=True)
    )
    return of_first, of_total


def _index(estimate: float, half: float) -> Index:
    value = min(1.0, max(0.0, estimate))
    low, high = (max(0.0, value - half), min(1.0, value + half)) if half > 0 else (None, None)
    return Index(value=value, estimate=estimate, low=low, high=high)


def _estimates(a: Array, b: Array, m: Array) -> Array:
    """Return both indices, computed over the last axis of the arrays; NaN if the variance is 0."""
    variance = (a.var(-1, ddof=1) + b.var(-1, ddof=1)) / 2
    centred = b - (a.mean(-1) + b.mean(-1))[..., None] / 2
    parts = np.stack([(centred * (m - a)).mean(-1), np.square(a - m).mean(-1) / 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = parts / variance
    return found
