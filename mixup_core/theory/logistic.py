"""Logistic: the logistic loss of a linear model on mixed pairs, its gradient and its minimiser."""

from typing import Any

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.rules import require

_NEWTON_STEPS = 200
_SMALLEST_GAIN = 1e-12
"""Twice the smallest loss decrease of a step, in nats, that is not lost in rounding errors."""


def require_pairs_of_nodes(config: Any) -> None:
    """Check that the quadrature over lam has an even number of nodes, which its law can use.

    The quadrature replaces the mean over the law, the distribution of lam. As mixing (i, j) at lam
    is mixing (j, i) at 1 - lam, half of the nodes of a symmetric law are enough.

    Raises:
        RuleError: If the number of nodes is odd or the law cannot be represented by so many.
    """
    require(config.nodes % 2 == 0, "nodes must be even", config, "nodes")
    config.law.require_nodes(config)


def slopes(scores: Floats, labels: Floats, lams: Floats) -> tuple[float, Floats]:
    """Return the mean mixed logistic loss, in nats, and its gradient by the points' scores: (n,).

    The mean runs over all ordered pairs (i, j) and all weights, with the logit
    lam s_i + (1 - lam) s_j and the target lam [y_i = 1] + (1 - lam) [y_j = 1].

    Args:
        scores: (n,), <w, x_i>; the model is linear, so they determine the mixed scores.
        labels: (n,), +-1.
        lams: (nodes,), values of lam with equal weight.
    """
    from scipy.special import expit

    ones = (labels + 1) / 2
    lam = lams[:, None, None]
    mixed = lam * scores[:, None] + (1 - lam) * scores
    target = lam * ones[:, None] + (1 - lam) * ones
    loss = float((np.logaddexp(0, mixed) - target * mixed).mean())
    pull = expit(mixed) - target
    gradient: Floats = (lam * pull).sum(axis=(0, 2)) + ((1 - lam) * pull).sum(axis=(0, 1))
    return loss, gradient / mixed.size


def floor(labels: Floats, lams: Floats) -> float:
    """Return the lowest possible loss of `slopes`, the mean entropy of its targets, in nats."""
    from scipy.special import entr

    ones = (labels + 1) / 2
    lam = lams[:, None, None]
    target = lam * ones[:, None] + (1 - lam) * ones
    return float((entr(target) + entr(1 - target)).mean())


def minimiser(
    inputs: Floats, labels: Floats, lams: Floats, decay: float = 0.0
) -> tuple[Floats, float]:
    """Return the w that minimises the loss of `slopes` plus decay/2 ||w||^2, and the final slope.

    The method is Newton's with step halving: the loss is convex and smooth. A minimum exists if
    decay is positive, if no w classifies all points correctly, or if there are more points than
    dimensions and some pairs of two classes have a lam in (0, 1).

    Args:
        inputs: (n, d).
        labels: (n,), +-1.
        lams: (nodes,), values of lam with equal weight.
        decay: Weight decay, at least 0.

    Returns:
        w, (d,), and the largest absolute component of the gradient at w, which rounding keeps above
        0.
    """
    weights = np.zeros(inputs.shape[1])
    now = _expansion(weights, inputs, labels, lams, decay)
    for _ in range(_NEWTON_STEPS):
        loss, gradient, curvature = now
        direction = np.linalg.solve(curvature, gradient)
        gain, share = float(gradient @ direction), 1.0
        tried = _expansion(weights - direction, inputs, labels, lams, decay)
        if gain < _SMALLEST_GAIN:  # rounding hides it in the loss; use the slope
            if np.abs(tried[1]).max() >= np.abs(gradient).max():
                break
        else:
            while tried[0] > loss - 1e-4 * share * gain and share > 1e-10:
                share /= 2
                tried = _expansion(weights - share * direction, inputs, labels, lams, decay)
            if tried[0] >= loss:
                break
        weights, now = weights - share * direction, tried
    return weights, float(np.abs(now[1]).max())


def _expansion(
    weights: Floats, inputs: Floats, labels: Floats, lams: Floats, decay: float
) -> tuple[float, Floats, Floats]:
    """Return the loss with decay, its gradient (d,) and its matrix of second derivatives (d, d).

    With p (1 - p) the curvature of a pair's loss, the second derivatives are X^T M X,
    M = diag(lam^2 row sums + (1 - lam)^2 column sums) + lam (1 - lam) (p (1 - p) + transposed).
    """
    from scipy.special import expit

    scores, ones = inputs @ weights, (labels + 1) / 2
    loss, slope = decay / 2 * float(weights @ weights), decay * weights
    curvature: Any = decay * np.eye(len(weights))
    for lam in lams:
        if lam == 1:
            mixed, target, size = scores[:, None], ones[:, None], len(scores)
        else:
            mixed = lam * scores[:, None] + (1 - lam) * scores
            target, size = lam * ones[:, None] + (1 - lam) * ones, len(scores) ** 2
        share = 1 / (size * len(lams))
        probability = expit(mixed)
        pull, bend = probability - target, probability * (1 - probability)
        loss += share * float((np.logaddexp(0, mixed) - target * mixed).sum())
        along, diagonal = lam * pull.sum(axis=1), lam**2 * bend.sum(axis=1)
        if lam != 1:
            along = along + (1 - lam) * pull.sum(axis=0)
            diagonal = diagonal + (1 - lam) ** 2 * bend.sum(axis=0)
            crossed = inputs.T @ (bend @ inputs)
            curvature += share * lam * (1 - lam) * (crossed + crossed.T)
        slope = slope + share * (inputs.T @ along)
        curvature += share * (inputs.T @ (diagonal[:, None] * inputs))
    return loss, slope, curvature
