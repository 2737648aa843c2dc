"""Linear correlations: losses and gradients of a linear model on two features per class."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

import math
from typing import Any

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.contracts import weights_of
from mixup_core.laws import Law

BETA_RANGE = (0.1, 0.9)
"""Smallest and largest beta, the weight of a point's first feature."""


def divergence(own: Any, partner: Any, log_others: Any, share: Any) -> Floats:
    """Return the cross entropy on a mixed label minus the entropy of this label, in nats.

    The formula avoids cancellation between the two. With q (`share`) the label weight of the point
    itself, z (`own`) and z' (`partner`) the logits of its label and of its partner's, and L
    (`log_others`) the log of the summed exponentials of all other logits,

        KL = log(q e^d + 1 - q) - q d  +  log(1 + e^L / (e^z + e^z')),   d = z - z' - logit(q).

    For q = 1, KL = log(1 + e^{L - z}): `partner` is not used, and L includes z' if the partner has
    another label.
    """
    from scipy.special import logit

    is_pure = np.asarray(share) == 1
    inner = np.where(is_pure, 0.5, share)
    apart = np.where(is_pure, 0.0, own - partner - logit(inner))
    small = np.clip(apart, -1, 1)
    between = np.where(
        np.abs(apart) <= 1,
        np.log1p(inner * np.expm1(small)) - inner * small,
        np.logaddexp(np.log(inner) + apart, np.log1p(-inner)) - inner * apart,
    )
    both = np.where(is_pure, own, np.logaddexp(own, partner))
    excess: Floats = np.where(is_pure, 0.0, between) + np.logaddexp(0.0, log_others - both)
    return excess


def pair_excess(logits: Floats, labels: Any, lam: float) -> Floats:
    """Return each mixed pair's cross entropy minus the entropy of its label, in nats: (N, N).

    The model is linear, so the logits of a mixed point are the mixed logits.
    """
    from scipy.special import logsumexp

    num_points, num_classes = logits.shape
    mixed = lam * logits[:, None] + (1 - lam) * logits
    rows, columns = np.broadcast_arrays(labels[:, None], labels[None, :])
    if lam < 0.5:  # the own label gets the larger share, which is never 0
        rows, columns = columns, rows
    own = np.take_along_axis(mixed, rows[..., None], 2)[..., 0]
    partner = np.take_along_axis(mixed, columns[..., None], 2)[..., 0]
    share = np.where(rows == columns, 1.0, max(lam, 1 - lam))
    known = np.arange(num_classes) == rows[..., None]
    known |= (np.arange(num_classes) == columns[..., None]) & (share < 1)[..., None]
    others = logsumexp(np.where(known, -np.inf, mixed), axis=2)
    return divergence(own, partner, others, share).reshape(num_points, num_points)


def equal_gap(correlation: float, lam: Any, classes: int) -> Floats:
    """Return the cross entropy above its infimum on a point mixed from two classes, in nats.

    In the linear model, the weights of every class have the same correlation C with each feature of
    the class. The logits of the mixed point are then lam C and (1 - lam) C for its two classes, and
    0 for the k - 2 others. At lam = 1/2 the result is log(2 + (k - 2) e^{-C / 2}) - log 2.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, the proof of lemma 3.2.
    """
    share = np.maximum(lam, 1 - np.asarray(lam))
    log_zeros = math.log(classes - 2) if classes > 2 else -math.inf
    partner = (1 - share) * correlation
    others = np.where(share == 1, np.logaddexp(log_zeros, partner), log_zeros)
    return divergence(share * correlation, partner, others, share)


def equal_excess(correlation: float, law: Law, classes: int, nodes: int) -> float:
    """Return the expected mixed loss above its infimum, in nats, if all correlations equal C.

        (k - 1)/k E[equal_gap(C, lam)] + (1/k) log(1 + (k - 1) e^{-C})

    equal_gap is the loss above its infimum on a point mixed from two classes. The second term is
    the loss of pairs within a class.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, the proof of lemma 3.2.
    """
    apart = float(equal_gap(correlation, law.nodes(nodes), classes).mean())
    same = math.log1p((classes - 1) * math.exp(-correlation))
    return (classes - 1) / classes * apart + same / classes


def has_root(lam: Floats) -> bool:
    """Return whether the mean excess has its minimum at a finite correlation (see `least_gap`)."""
    return not bool(np.isin(lam, [0.0, 0.5, 1.0]).all())


def least_gap(lam: Floats, classes: int) -> tuple[float, float]:
    """Return the smallest mean excess of the loss over its infimum, and the correlation C there.

    The excess (`equal_gap`) is that of a linear model on points mixed from two classes; C is the
    correlation of every class's weights with each of its features. The mean over lam is convex in
    C, so its derivative has one root. If each value of lam is one of 0, 1/2 and 1, there is no
    root: the mean tends to 0 as C grows, and (0, infinity) is returned.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, proposition 3.3.
    """
    slopes = np.stack([lam, 1 - lam])
    target = float((lam**2 + (1 - lam) ** 2).mean())
    if not has_root(lam):
        return 0.0, math.inf

    from scipy.optimize import brentq

    def derivative(correlation: float) -> float:
        exponentials = np.exp(correlation * (slopes - slopes.max(axis=0)))
        zeros = (classes - 2) * np.exp(-correlation * slopes.max(axis=0))
        softmax = exponentials / (exponentials.sum(axis=0) + zeros)
        return float((softmax * slopes).sum(axis=0).mean()) - target

    upper = 1.0
    while derivative(upper) < 0:
        upper *= 2
    best = float(brentq(derivative, 0.0, upper, xtol=1e-12, rtol=1e-13))
    return float(equal_gap(best, lam, classes).mean()), best


def _pulls(delta: float, classes: int, own: Any, partner: Any, lam: Any) -> tuple[Floats, Floats]:
    """Return target minus softmax of class y, for pairs of two classes and for pairs within y."""
    from scipy.special import expit

    first, second = lam * own * delta, (1 - lam) * partner * delta
    log_zeros = math.log(classes - 2) if classes > 2 else -math.inf
    apart = lam - expit(first - np.logaddexp(second, log_zeros))
    same = expit(math.log(classes - 1) - first - second)
    return apart, same


def gradient_correlations(
    law: Law, classes: int, delta: float, nodes: int = 200
) -> tuple[float, float]:
    """Return the negative gradient of the mixed loss J along the features of a class.

    Each class y has two features, v_{y,1} and v_{y,2}; a point of class y is
    beta v_{y,1} + (1 - beta) v_{y,2} with a random beta. A linear model has learned only the first:
    its weights are w_y = delta v_{y,1}. Let phi, phi', phi'' be the softmax of class y at a mixed
    pair if only the first, only the second, or both points are of class y. Let u be 1 - beta in the
    first result and 2 beta - 1 in the second, for the beta of the point of class y; if both are of
    class y, u belongs to the first point and u' (with its beta') to the second. Each result is an
    expectation over all ordered pairs:

        (k-1)/k^2 E[(lam - phi) lam u + (1 - lam - phi') (1 - lam) u]
            + 1/k^2 E[(1 - phi'') (lam u + (1 - lam) u')].

    For midpoint and ERM the first result is

        (k-1)/k^2 E[(1 - 2 phi)(1 - beta)/2] + 1/k^2 E[(1 - phi'')(1 - (beta + beta')/2)]   and
        (1/k) E[(1 - phi)(1 - beta)],   phi = e^{beta delta} / (e^{beta delta} + k - 1).

    Source: Chidambaram et al. 2023, arXiv:2210.13512, propositions 3.4 and 3.5: with
    delta = c log k for a constant c, the first result stays above Theta(1/k^2) for midpoint and
    falls as O(k^{1 - 0.1 c}) for ERM.
    """
    places, weights = np.polynomial.legendre.leggauss(128)
    low, high = BETA_RANGE
    betas, weights = low + (high - low) * (places + 1) / 2, weights / 2
    own, partner, weight = betas[:, None], betas[None, :], weights[:, None] * weights
    totals = np.zeros(2)
    quantiles = law.nodes(nodes)
    for lam in quantiles:
        apart, same = _pulls(delta, classes, own, partner, lam)
        swapped, _ = _pulls(delta, classes, own, partner, 1 - lam)
        pull = (classes - 1) * (apart * lam + swapped * (1 - lam))
        for index, (u, v) in enumerate([(1 - own, 1 - partner), (2 * own - 1, 2 * partner - 1)]):
            totals[index] += (weight * (pull * u + same * (lam * u + (1 - lam) * v))).sum()
    second, difference = totals / classes**2 / len(quantiles)
    return float(second), float(difference)


def sampled_correlations(
    law: Law, classes: int, delta: float, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimate the negative gradient of the mixed loss along the features of a class, by sampling.

    The first result is along the second feature of a class, the second along its first feature
    minus its second. `gradient_correlations` computes the exact values and defines the model. Both
    results are averaged over the classes.
    """
    labels = rng.integers(classes, size=(2, draws))
    own, partner = rng.uniform(*BETA_RANGE, size=(2, draws))
    lam = weights_of(law, draws, rng)
    is_same = labels[0] == labels[1]
    first, same = _pulls(delta, classes, own, partner, lam)
    second, _ = _pulls(delta, classes, partner, own, 1 - lam)
    sums = []
    for u, v in ((1 - own, 1 - partner), (2 * own - 1, 2 * partner - 1)):
        together = same * (lam * u + (1 - lam) * v)
        sums.append(np.where(is_same, together, first * lam * u + second * (1 - lam) * v))
    return float(sums[0].mean()) / classes, float(sums[1].mean()) / classes
