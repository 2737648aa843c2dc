"""Features: test whether a network has learned the features that were planted in its data."""

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer.network import PatchOutputs
from mixup_core.theory.two_layer.points import PatchSet

LEARNED_ACCURACY = 0.95
"""A feature counts as learned if the accuracy with its patches alone is at least this high."""


def feature_accuracy(
    outputs: PatchOutputs, points: PatchSet, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the accuracy on each class if points keep the patches of one feature, or all patches.

    A network has learned the feature l of class y if it still classifies points of class y
    correctly when all signal patches of other features are set to 0. Such patches add R(0) = 0
    (R is the activation) to every output, so they are left out.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Definition 4.5, applied to test points.
    """
    parts = points.counts * outputs.by_patch(weights)
    features = weights.shape[2] // len(parts)
    signals = (len(points.counts) - 1) // features
    by_feature = parts[:, :-1].reshape(len(parts), features, signals, -1).sum(axis=2)
    noise = parts[:, -1]
    alone = [_accuracy(by_feature[:, feature] + noise, points) for feature in range(features)]
    return np.stack(alone, axis=1), _accuracy(by_feature.sum(axis=1) + noise, points)


def is_right(outputs: Floats, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for each point that is classified correctly: (points,), bool.

    The output for a point's own class must be larger than all others. A tie counts as wrong, so
    that a network with zero outputs is wrong everywhere.
    """
    is_own = np.arange(len(outputs))[:, None] == labels
    rivals = np.where(is_own, -np.inf, outputs).max(axis=0)
    right: NDArray[np.bool_] = np.where(is_own, outputs, -np.inf).max(axis=0) > rivals
    return right


def correlations(weights: Floats, threshold: float) -> Floats:
    """Return how strongly the active neurons of each class correlate with its features: (k, L).

        C_{y,l} = sum over B_{y,l} of <w_{y,r}, v_{y,l}>,
        B_{y,l} = {r: <w_{y,r}, v_{y,l}> >= rho / delta1}

    w_{y,r} are the weights of neuron r of class y, v_{y,l} is feature l of this class, rho the
    input above which the activation is linear, and delta1 the smallest correlation of a signal
    patch with its feature. For a learned feature, C_{y,l} is at least of order log k.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, appendix B.
    """
    classes, neurons, _ = weights.shape
    own = weights.reshape(classes, neurons, classes, -1)[range(classes), :, range(classes)]
    summed: Floats = np.where(own >= threshold, own, 0.0).sum(axis=1)
    return summed


def _accuracy(outputs: Floats, points: PatchSet) -> Floats:
    labels, classes = points.labels, len(outputs)
    right = is_right(outputs, labels)
    return np.bincount(labels, right, classes) / np.bincount(labels, None, classes)
