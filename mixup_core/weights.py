"""Weights: lam of a mixing law in NumPy: draws, quantiles, mean label entropy."""

import math
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from mixup_core.laws import Beta, Erm, Law, Midpoint

Floats = NDArray[np.float64]


def draw_weights(law: Law, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return weights lam drawn from a law, each in [0, 1].

    Args:
        law: ERM and midpoint draw nothing: lam is 1 and 1/2.
        shape: Of the result.
        rng: Source of a Beta law's draws.
    """
    match law:
        case Erm():
            return np.ones(shape)
        case Midpoint():
            return np.full(shape, 0.5)
        case Beta(alpha=alpha):
            return rng.beta(alpha, alpha, shape)
        case _:
            assert_never(law)


def weight_quantiles(law: Law, count: int) -> Floats:
    """Return nodes of equal weight that stand for a law: (count,), or (1,) where lam is constant.

    They are the quantiles of (i + 1/2) / count, the midpoint rule in the law's distribution
    function: a mean over them is the law's expectation up to O(1 / count^2) where the integrand is
    smooth in the quantile.
    """
    match law:
        case Beta(alpha=alpha):
            from scipy.special import betaincinv

            places: Any = (np.arange(count) + 0.5) / count
            nodes: Floats = betaincinv(alpha, alpha, places)
            return nodes
        case Erm() | Midpoint():
            return np.array([1.0 if isinstance(law, Erm) else 0.5])
        case _:
            assert_never(law)


def upper_quantiles(law: Law, count: int) -> Floats:
    """Return those of an even number of quantiles that are at least 1/2: (count / 2,) or (1,).

    Laws are symmetric, and a pair mixed by 1 - lam is the reversed pair mixed by lam: over all
    ordered pairs, half of the nodes stand for all.
    """
    nodes = weight_quantiles(law, count)
    return nodes[nodes >= 0.5]


def label_entropy(law: Law) -> float:
    """Return the mean entropy of a label mixed from two classes, in nats: ERM 0, midpoint ln 2.

    For Beta(a, a) it is E[-2 lam ln lam] = psi(2 a + 1) - psi(a + 1), psi the digamma function; 1/2
    at a = 1. Recorded numbers of images are bound to the last bits of
    `mixup_core.mixing.loss_floor`.
    """
    match law:
        case Erm():
            return 0.0
        case Midpoint():
            return math.log(2)
        case Beta(alpha=alpha):
            from scipy.special import psi

            return float(psi(2 * alpha + 1) - psi(alpha + 1))
        case _:
            assert_never(law)
