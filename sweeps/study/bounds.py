"""Bounds: significance levels for tests at several looks that together keep one overall level.

A claim is tested at each look, after more and more seeds. A test is significant if |t| is above a
bound, which its level gives; this is called a crossing. The overall level is the probability of at
least one crossing if there is no difference.

The probabilities are computed, not simulated. If there is no difference, the standardised sum of n
independent normal differences,

    w_n = sum / sqrt(n * sum of squares),    t_n = w_n sqrt((n - 1) / (1 - w_n^2)),

depends only on the direction of the vector of the n differences, which is independent of its
length. A crossing is a |w_n| above a bound, and w_n is a Markov chain:

    w_(n+m) = (sqrt(n B) w_n + sqrt(m (1 - B)) v) / sqrt(n + m),

where B ~ Beta(n/2, m/2) is the share of the first n differences in the sum of squares, and v is
sum / sqrt(m * sum of squares) of the m new ones: one coordinate of a uniform point on the sphere in
m dimensions. The probability of a first crossing is integrated backwards from the last look.

Sources: for the looks, Pocock 1977, O'Brien and Fleming 1979, Wang and Tsiatis 1987; for the
repeated intervals, Jennison and Turnbull 1989. They assume a known variance; this module does not.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy import optimize, special

from mixup_core.arrays import Floats

_NODES, _PARTS, _ANGLES = 32, 40, 20
"""Numbers of integration points for w, B and v; tests check that the overall level is exact to 1 %.
"""
_PARTS_OF_ONE = 600
"""Number of integration points for B if one difference is added, because the integrand then jumps.
"""
_WEAKEST, _STRONGEST, _STRENGTHS = 0.2, 4.5, 10
"""Range and number of bound strengths at which the overall level is computed; others are
interpolated."""
_LARGEST_Z = 37.0
"""Above this value the normal tail probability is 0 in double precision."""


def crossing(looks: Sequence[int], levels: Sequence[float]) -> float:
    """Return the probability that a paired t test is significant by chance at one or more looks."""
    sizes = list(looks)
    limits = [_limit(n, level) for n, level in zip(sizes, levels, strict=True)]
    later: Callable[[Any], Any] = np.zeros_like
    for n, following, limit, edge in reversed(
        list(zip(sizes[:-1], sizes[1:], limits[1:], limits[:-1], strict=True))
    ):
        later = _fitted(_step(n, following - n, limit, later), edge)
    return float(_first(sizes[0], limits[0], later))


def overall_level(looks: tuple[int, ...], spending: float, look: int, level: float) -> float:
    """Return the overall error level of all looks, given the level of the test at one look."""
    if not 0 < level < 1:
        return min(1.0, max(0.0, level))
    return _overall(looks, spending, _z(level) * (looks[look] / looks[-1]) ** (0.5 - spending))


@cache
def nominal_levels(looks: tuple[int, ...], spending: float, level: float) -> tuple[float, ...]:
    """Return the two-sided level of the test at each look, for a given overall level."""

    def excess(strength: float) -> float:
        return math.log(_overall(looks, spending, strength) / level)

    strength = optimize.brentq(excess, _WEAKEST, _z(level / len(looks)) + 1, xtol=1e-9)
    return _levels(looks, spending, strength)


def _overall(looks: tuple[int, ...], spending: float, strength: float) -> float:
    """Return the overall level for a bound strength; at most the sum of the looks' levels."""
    bonferroni = math.fsum(_levels(looks, spending, strength))
    if strength <= _WEAKEST:
        return 1.0
    tabulated = min(strength, _STRONGEST)  # above it the quantile grows faster than the strength
    quantile = float(_curve(looks, spending)(tabulated)) + strength - tabulated
    return min(1.0, bonferroni, 2 * float(special.ndtr(-quantile)))


@cache
def _curve(looks: tuple[int, ...], spending: float) -> chebyshev.Chebyshev:
    """Return the normal quantile of the overall level as a polynomial of the bound's strength."""

    def quantiles(strengths: Floats) -> Floats:
        levels = (_levels(looks, spending, float(strength)) for strength in strengths)
        return np.array([_z(max(crossing(looks, bound), *bound)) for bound in levels])

    return chebyshev.Chebyshev.interpolate(quantiles, _STRENGTHS - 1, domain=[_WEAKEST, _STRONGEST])


def _levels(looks: tuple[int, ...], spending: float, strength: float) -> tuple[float, ...]:
    """Return the level of a bound at each look: z = strength * (n / last n)^(spending - 1/2)."""
    # Frozen: these levels. A study that has begun would take its later looks at others;
    # tests/sweeps/study/test_bounds.py fails.
    zs = [min(strength * (n / looks[-1]) ** (spending - 0.5), _LARGEST_Z) for n in looks]
    return tuple(2 * float(special.ndtr(-z)) for z in zs)


def _z(level: float) -> float:
    return -float(special.ndtri(level / 2))


def _limit(n: int, level: float) -> float:
    """Return the |w| above which a t test of n differences is significant."""
    t = float(special.stdtrit(n - 1, 1 - level / 2)) if level < 1 else 0.0
    return 1.0 if math.isinf(t) else t / math.sqrt(t * t + n - 1)


def _first(n: int, limit: float, later: Callable[[Any], Any]) -> float:
    """Return the probability of a crossing at the first look or later."""
    outside = 2 * special.betainc((n - 1) / 2, 0.5, 1 - limit * limit) / 2
    angles, weights = _angles(np.array([-limit]), np.array([limit]), n)
    return float(outside + np.sum(weights * later(np.sin(angles))))


def _step(n: int, m: int, limit: float, later: Callable[[Any], Any]) -> Callable[[Floats], Floats]:
    """Return the probability of a crossing at the next look or later, as a function of w now."""
    parts = _PARTS if m > 1 else _PARTS_OF_ONE
    roots, weights = special.roots_jacobi(parts, m / 2 - 1, n / 2 - 1)
    share = (1 + roots) / 2
    weights = weights / weights.sum()
    old, new = np.sqrt(n * share / (n + m)), np.sqrt(m * (1 - share) / (n + m))

    def probability(w: Floats) -> Floats:
        centre = w[:, None] * old
        low = np.clip((-limit - centre) / new, -1, 1)
        high = np.clip((limit - centre) / new, -1, 1)
        if m == 1:  # v is -1 or 1
            total = np.zeros_like(centre)
            for v in (-1.0, 1.0):
                following = centre + v * new
                inside = np.abs(following) <= limit
                total += 0.5 * np.where(inside, later(np.where(inside, following, 0.0)), 1.0)
            return np.asarray(total @ weights)
        crossed = _tail(-low, m) + _tail(high, m)
        angles, parts = _angles(low.ravel(), high.ravel(), m)
        shape = (*centre.shape, _ANGLES)
        following = centre[..., None] + new[:, None] * np.sin(angles.reshape(shape))
        stayed = np.sum(parts.reshape(shape) * later(following), axis=-1)
        return np.asarray((crossed + stayed) @ weights)

    return probability


def _tail(v: Floats, m: int) -> Floats:
    """Return the probability that a coordinate of a uniform point on the sphere is above v."""
    half = special.betainc((m - 1) / 2, 0.5, 1 - v * v) / 2
    return np.asarray(np.where(v > 0, half, 1 - half))


def _angles(low: Floats, high: Floats, m: int) -> tuple[Floats, Floats]:
    """Return integration angles whose sines are between two limits, with their weights for v."""
    nodes, weights = np.polynomial.legendre.leggauss(_ANGLES)
    start, end = np.arcsin(low)[:, None], np.arcsin(high)[:, None]
    angles = (start + end) / 2 + (end - start) / 2 * nodes
    density = np.cos(angles) ** (m - 2) / special.beta(0.5, (m - 1) / 2)
    return angles, (end - start) / 2 * weights * density


def _fitted(function: Callable[[Floats], Floats], edge: float) -> Callable[[Any], Any]:
    """Return a polynomial interpolation of a function of w on [-edge, edge]."""
    nodes = chebyshev.chebpts1(_NODES)
    series = chebyshev.chebfit(nodes, function(nodes * edge), _NODES - 1)
    return lambda w: chebyshev.chebval(w / edge, series)
