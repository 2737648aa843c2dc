"""Landscape: the training loss of the two-layer network, and the gradient of this loss."""

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer.config import TwoLayerConfig
from mixup_core.theory.two_layer.network import PatchOutputs
from mixup_core.theory.two_layer.points import PatchSet


class Landscape:
    """Training loss of the two-layer network: mean cross entropy on M points with soft labels.

        J(W) = -1/M sum_n sum_y q_{y,n} log softmax(g(x_n))_y

    q_{y,n} is the probability of class y in the label of the point x_n, g(x_n) the network's
    output. On unmixed points J is the loss of ERM; on mixed pairs it is the mixed loss J_MM of the
    source.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2.
    """

    def __init__(self, points: PatchSet, config: TwoLayerConfig) -> None:
        self._outputs = PatchOutputs(points, config)
        kinds, num_points, features = points.patches.shape
        self._targets = np.ascontiguousarray(points.targets)
        self._counts = points.counts
        self._patches = points.patches.reshape(kinds * num_points, features)
        self._slopes = np.empty((config.classes, config.neurons, kinds * num_points))

    def loss(self, weights: Floats) -> float:
        """Return the training loss J, in nats, at weights (k classes, m neurons, L k features)."""
        logs = _log_softmax(self._outputs(weights))
        return float(-(self._targets * logs).sum(axis=0).mean())

    def downhill(self, weights: Floats) -> Floats:
        """Return minus the gradient of the training loss at some weights, in their shape.

        This is the velocity of gradient flow.
        """
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
