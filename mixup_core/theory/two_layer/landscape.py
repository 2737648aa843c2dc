"""Landscape: the loss of the two-layer network on points with soft labels, and its gradient."""

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer.config import TwoLayerConfig
from mixup_core.theory.two_layer.network import PatchOutputs
from mixup_core.theory.two_layer.points import PatchSet


class Landscape:
    """Loss function: mean cross entropy of the outputs' softmax on fixed points, and its gradient.

        J(W) = -1/M sum_n sum_y q_{y,n} log softmax(g(x_n))_y

    For points with hard labels it is J of ERM; for mixed pairs it is J_MM.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2.
    """

    def __init__(self, points: PatchSet, config: TwoLayerConfig) -> None:
        """Store the points, which must not change afterwards."""
        self._outputs = PatchOutputs(points, config)
        kinds, num_points, features = points.patches.shape
        self._targets = np.ascontiguousarray(points.targets)
        self._counts = points.counts
        self._patches = points.patches.reshape(kinds * num_points, features)
        self._slopes = np.empty((config.classes, config.neurons, kinds * num_points))

    def loss(self, weights: Floats) -> float:
        """Return the loss J of weights (k, m, L k), in nats."""
        logs = _log_softmax(self._outputs(weights))
        return float(-(self._targets * logs).sum(axis=0).mean())

    def downhill(self, weights: Floats) -> Floats:
        """Return -grad J, the velocity of the gradient flow; its shape is that of the weights."""
        parts = self._outputs.by_patch(weights, self._slopes)
        logs = _log_softmax((parts * self._counts).sum(axis=1))
        pull = (self._targets - np.exp(logs)) / logs.shape[1]
        velocity = np.empty(weights.shape)
        for y, slopes in enumerate(self._slopes):
            pulled = self._patches * (self._counts * pull[y]).reshape(-1, 1)
            np.matmul(slopes, pulled, out=velocity[y])
        return velocity


def _log_softmax(outputs: Floats) -> Floats:
    shifted: Floats = outputs - outputs.max(axis=0)
    shifted -= np.log(np.exp(shifted).sum(axis=0))
    return shifted
