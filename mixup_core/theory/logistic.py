"""Logistic: the logistic loss of a linear model on mixed pairs, its gradient and its minimiser."""

from typing import Any

import numpy as np

from mixup_core.arrays import Floats, special
from mixup_core.config.catalogue import origin_of
from mixup_core.laws import Law
from mixup_core.rules import require

_NEWTON_STEPS = 200
_SMALLEST_GAIN = 1e-12
"""Twice the smallest decrease of the loss in a Newton step, in nats, that exceeds rounding."""


def require_pairs_of_nodes(config: Any) -> None:
    """Check that `config.nodes` is even, and that this number of nodes can represent the law.

    Mixing (i, j) with lam equals mixing (j, i) with 1 - lam, so for a symmetric law half of an even
    number of nodes is enough.
    """
    require(config.nodes % 2 == 0, "nodes must be even", config, "nodes")
    config.law.require_nodes(config)


def corrections_of(config: Any) -> int:
    """Return 1 if a correction of `Law.nodes_of_pairs` changed a configuration's results; else 0.

    Before, a symmetric law had the wrong weight at lam = 1/2 if this was one of several nodes.
    """
    law = config.law
    if law.constant is not None or not law.is_symmetric or _is_known_continuous(law):
        return 0
    nodes = law.nodes(config.nodes)
    num_before = np.count_nonzero(nodes >= 0.5)
    has_others = bool((nodes > 0.5).any())
    return int(has_others and num_before != len(law.nodes_of_pairs(config.nodes)))


def _is_known_continuous(law: Law) -> bool:
    """Return True for built-in continuous laws, whose nodes would need SciPy."""
    return origin_of(type(law)) is None and law.has_nodes(1)


def slopes(scores: Floats, labels: Floats, lams: Floats) -> tuple[float, Floats]:
    """Return the mean mixed logistic loss, in nats, and its gradient by the scores: (n,).

    The mean runs over all ordered pairs (i, j) and all values of lam, with the logit
    lam s_i + (1 - lam) s_j and the target lam [y_i = 1] + (1 - lam) [y_j = 1].
    """
    ones = (labels + 1) / 2
    lam = lams[:, None, None]
    mixed = lam * scores[:, None] + (1 - lam) * scores
    target = lam * ones[:, None] + (1 - lam) * ones
    loss = float((np.logaddexp(0, mixed) - target * mixed).mean())
    pull = special.expit(mixed) - target
    gradient: Floats = (lam * pull).sum(axis=(0, 2)) + ((1 - lam) * pull).sum(axis=(0, 1))
    return loss, gradient / mixed.size


def floor(labels: Floats, lams: Floats) -> float:
    """Return the mean entropy of the mixed labels, a lower bound of the mean mixed loss."""
    ones = (labels + 1) / 2
    lam = lams[:, None, None]
    target = lam * ones[:, None] + (1 - lam) * ones
    return float((special.entr(target) + special.entr(1 - target)).mean())


def minimiser(
    inputs: Floats, labels: Floats, lams: Floats, decay: float = 0.0
) -> tuple[Floats, float]:
    """Return the weights w that minimise the mixed logistic loss plus decay/2 ||w||^2.

    The loss is convex and smooth; it is minimised by Newton's method with step halving. For points
    in general position, a minimum exists if decay is positive, if no w classifies all points
    correctly, or if there are more points than dimensions, points of both classes, and a value of
    `lams` in (0, 1).
    """
    weights = np.zeros(inputs.shape[1])
    now = _expansion(weights, inputs, labels, lams, decay)
    for _ in range(_NEWTON_STEPS):
        loss, gradient, curvature = now
        direction = np.linalg.solve(curvature, gradient)
        gain, share = float(gradient @ direction), 1.0
        tried = _expansion(weights - direction, inputs, labels, lams, decay)
        if gain < _SMALLEST_GAIN:  # rounding hides the decrease of the loss; compare gradients
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
    """Return the loss with decay, its gradient (d,) and its matrix of second derivatives (d, d)."""
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
        probability = special.expit(mixed)
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
