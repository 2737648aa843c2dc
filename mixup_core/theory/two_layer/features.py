"""Features: accuracy of a network with each feature alone, and its correlations with features."""

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer.network import PatchOutputs
from mixup_core.theory.two_layer.points import PatchSet

LEARNED_ACCURACY = 0.95
"""Accuracy with a feature's patches alone from which the feature counts as learned."""


def feature_accuracy(
    outputs: PatchOutputs, points: PatchSet, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the accuracy per class with one feature's patches alone, and with all patches.

    v_{y,l} counts as learned if points of class y are still classified correctly when all patches
    with other features are set to 0. A patch of zeros adds R(0) = 0 to every output, so it is
    left out.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Definition 4.5, on fresh points.

    Args:
        outputs: The network on `points`.
        points: Points with one label each.
        weights: Weights of the network, (k, m, L k).

    Returns:
        (k, L), the accuracy on class y with feature l alone, and (k,), with all; in [0, 1].
    """
    parts = points.counts * outputs.by_patch(weights)
    features = weights.shape[2] // len(parts)
    signals = (len(points.counts) - 1) // features
    by_feature = parts[:, :-1].reshape(len(parts), features, signals, -1).sum(axis=2)
    noise = parts[:, -1]
    alone = [_accuracy(by_feature[:, feature] + noise, points) for feature in range(features)]
    return np.stack(alone, axis=1), _accuracy(by_feature.sum(axis=1) + noise, points)


def is_right(outputs: Floats, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which points have the largest output for their own class: (points,), bool.

    A tie counts as wrong: a network with zero outputs is wrong everywhere.

    Args:
        outputs: (k, points).
        labels: (points,), each in [0, k).
    """
    is_own = np.arange(len(outputs))[:, None] == labels
    rivals = np.where(is_own, -np.inf, outputs).max(axis=0)
    right: NDArray[np.bool_] = np.where(is_own, outputs, -np.inf).max(axis=0) > rivals
    return right


def correlations(weights: Floats, threshold: float) -> Floats:
    """Return C_{y,l}, the summed correlations of class y's active neurons with v_{y,l}: (k, L).

        C_{y,l} = sum over B_{y,l} of <w_{y,r}, v_{y,l}>,
        B_{y,l} = {r: <w_{y,r}, v_{y,l}> >= rho / delta1}

    For a learned feature, C_{y,l} is at least of order log k.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, appendix B.

    Args:
        weights: (k, m, L k).
        threshold: rho / delta1, from which on every signal patch is in the linear part of the
            activation.
    """
    classes, neurons, _ = weights.shape
    own = weights.reshape(classes, neurons, classes, -1)[range(classes), :, range(classes)]
    summed: Floats = np.where(own >= threshold, own, 0.0).sum(axis=1)
    return summed


def _accuracy(outputs: Floats, points: PatchSet) -> Floats:
    labels, classes = points.labels, len(outputs)
    right = is_right(outputs, labels)
    return np.bincount(labels, right, classes) / np.bincount(labels, None, classes)
