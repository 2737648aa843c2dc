"""Crossed designs: first-order and total indices of each source of randomness.

At each context, a random draw of all sources, one run has all sources of the first draw (A), one
all of a second draw (B), and one for each source has that source of the second draw and all others
of the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.numbers.summary import CONFIDENCE, t_quantile

Array = NDArray[np.float64]

LEAST_CONTEXTS = 3
"""With fewer, leaving one out says nothing of the spread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """A part of the variance that a source makes, with a 95 % interval."""

    value: float
    """Estimate of a number in [0, 1]; noise can bring it outside."""
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Indices:
    """The indices of one source over shared contexts."""

    n: int
    """Number of contexts."""
    first: Index
    """Part of the variance that knowing the source alone would remove, on average over others."""
    total: Index
    """Part that is left while all other sources are known: first order and all interactions."""


def indices(first: Sequence[float], second: Sequence[float], moved: Sequence[float]) -> Indices:
    """Return first-order and total indices of a source from runs at the same contexts.

        V = (var A + var B) / 2
        first = mean((B - m) (M - A)) / V, m the mean of A and B
        total = mean((A - M)^2) / (2 V)

    Subtracting m changes no expectation, and without it the mean of the metric would enter the
    noise. Intervals are of the jackknife over contexts, with t of n - 1 degrees of freedom.

    Source: Saltelli et al. 2010, Computer Physics Communications 181, table 2 (b) and (f); (f) is
    of Jansen 1999.

    Args:
        first: A, the metric with all sources of the first draw.
        second: B, with all sources of the second draw.
        moved: M, with the source of the second draw, all others of the first.

    Raises:
        ValueError: If there are fewer than 3 contexts, or the metric is the same in all of them.
    """
    a, b, m = (np.asarray(values, np.float64) for values in (first, second, moved))
    n = len(a)
    if n < LEAST_CONTEXTS:
        raise ValueError(f"`contexts >= {LEAST_CONTEXTS}` must hold, got (contexts={n}).")
    if np.ptp(np.concatenate([a, b])) == 0:
        raise ValueError("the metric must vary over contexts.")
    estimates = _estimates(a, b, m)
    kept = ~np.eye(n, dtype=bool)
    a, b, m = (np.broadcast_to(x, (n, n))[kept].reshape(n, n - 1) for x in (a, b, m))
    without = _estimates(a, b, m)
    spread = np.sqrt((n - 1) / n * np.square(without - without.mean(1)[:, None]).sum(1))
    half = t_quantile(n, CONFIDENCE) * spread
    of_first, of_total = (
        Index(value=float(value), low=float(value - width), high=float(value + width))
        for value, width in zip(estimates, half, strict=True)
    )
    return Indices(n=n, first=of_first, total=of_total)


def _estimates(a: Array, b: Array, m: Array) -> Array:
    """Return first-order and total index over the last axis; not a number without a variance."""
    variance = (a.var(-1, ddof=1) + b.var(-1, ddof=1)) / 2
    centred = b - (a.mean(-1) + b.mean(-1))[..., None] / 2
    parts = np.stack([(centred * (m - a)).mean(-1), np.square(a - m).mean(-1) / 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = parts / variance
    return found
