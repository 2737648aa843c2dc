"""Crossed designs: first-order and total variance index of each source of randomness.

A context is a pair of random draws of every source. In each context, run A uses the first draw of
all sources, and run B the second draw of all. For each source one further run uses the second draw
of this source and the first draw of all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.numbers.summary import CONFIDENCE, t_quantile

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Indices:
    """First-order and total index: shares of variance caused by one source of randomness.

    They are computed from n contexts. A context is a pair of random draws, a first and a second
    one, of every source.
    """

    n: int
    """Number of contexts from which the indices are estimated."""
    first: Index
    """First-order index: share of the variance that would vanish, on average, if the source were
    fixed.
    """
    total: Index
    """Total index: share that would remain if all other sources were fixed. It includes
    interactions.
    """


def indices(first: Sequence[float], second: Sequence[float], moved: Sequence[float]) -> Indices:
    """Return first-order and total variance index (Sobol) of one source of randomness.

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
    return Indices(n=n, first=of_first, total=of_total)


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
