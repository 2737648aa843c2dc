"""The two-layer network on points made of patches: initial weights, outputs, loss and gradient."""

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.seeding import stream
from mixup_core.theory.two_layer.config import TwoLayerConfig
from mixup_core.theory.two_layer.points import PatchSet

BLOCK = 16_384
"""Largest number of pre-activations that are computed at a time, so that they stay in the level-2
cache. At least one neuron is computed at a time, even if it has more.
"""


def initial_weights(config: TwoLayerConfig) -> Floats:
    """Draw initial weights from N(0, sigma_0^2): (k classes, m neurons, L k features)."""
    shape = (config.classes, config.neurons, config.data.span)
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    return config.init * stream(config.seed, "initial weights").standard_normal(shape)


class PatchOutputs:
    """Computes the outputs of the two-layer network on fixed points, for any given weights.

    The activation R is 0 below 0, a power of its input up to rho, and linear above:

        R(x) = 0                                  x <= 0
             = x^alpha / (alpha rho^(alpha - 1))  0 <= x <= rho
             = x - (1 - 1 / alpha) rho            rho <= x

    R and R' are continuous; a negative correlation activates no neuron, even for even alpha.
    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.

    Pre-activations are computed by one matrix product per block of neurons and then changed in
    place. A patch has few nonzero coordinates, but up to k = 16 classes a dense product is cheaper
    than selecting them, because most of the time is spent on powers.
    """

    def __init__(self, points: PatchSet, config: TwoLayerConfig) -> None:
        self.config = config
        kinds, num_points, features = points.patches.shape
        self._shape = (config.classes, kinds, num_points)
        self._counts = points.counts
        columns = kinds * num_points
        self._scaled = np.ascontiguousarray(points.patches.reshape(columns, features).T)
        self._scaled /= config.rho
        self._rows = max(1, min(config.neurons, BLOCK // columns))
        self._buffers = np.empty((3, self._rows, columns))

    def __call__(self, weights: Floats) -> Floats:
        """Return the outputs g of the network on all points: (k, points)."""
        outputs: Floats = (self.by_patch(weights) * self._counts).sum(axis=1)
        return outputs

    def by_patch(self, weights: Floats, slopes: Floats | None = None) -> Floats:
        """Return the contribution of each patch to each output: (k, patches, points)."""
        config, rows = self.config, self._rows
        outputs = np.zeros((config.classes, self._scaled.shape[1]))
        for y in range(config.classes):
            for start in range(0, config.neurons, rows):
                block = slice(start, min(start + rows, config.neurons))
                kept = None if slopes is None else slopes[y, block]
                self._add(weights[y, block], outputs[y], kept)
        outputs *= config.rho
        return outputs.reshape(self._shape)

    def _add(self, weights: Floats, output: Floats, slopes: Floats | None) -> None:
        """Add the activations of some neurons, divided by rho, to the output of their class."""
        neurons, power = len(weights), self.config.network.power
        scaled, clipped, spare = self._buffers[:, :neurons]
        ones = np.ones(neurons)
        np.matmul(weights, self._scaled, out=scaled)
        np.clip(scaled, 0.0, 1.0, out=clipped)
        np.maximum(scaled, 1.0, out=scaled)
        output += ones @ scaled - neurons
        slope = spare if slopes is None else slopes
        _power(clipped, power - 1, out=slope, square=scaled)
        clipped *= slope
        output += (ones @ clipped) / power


def _power(values: Floats, power: int, *, out: Floats, square: Floats) -> None:
    """Compute values^power by repeated squaring, into `out`; `square` is scratch space."""
    squared = values
    product: Floats | float = values if power & 1 else 1.0
    while power := power >> 1:
        squared = np.multiply(squared, squared, out=square)
        if power & 1:
            product = np.multiply(product, squared, out=out)
    if product is values:
        out[:] = values


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
