"""ReluNetwork: a network with one hidden ReLU layer in float64 NumPy, and Adam, for tiny data.

With hundreds of units and at most hundreds of points, most time is spent on the overhead of each
operation, not on arithmetic: a step on flat arrays is several times faster than autograd.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixup_core.arrays import Floats, Ints, special
from mixup_core.contracts import weights_of
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import ArrayProcess, Arrays, Metrics

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


@dataclass(frozen=True, kw_only=True, slots=True)
class ReluNetwork:
    """Network with logits max(x W1 + b1, 0) W2 + b2; methods take its weights as a flat array."""

    inputs: int
    hidden: int
    classes: int

    @property
    def size(self) -> int:
        """Number of weights and biases of the network: the length of their flat array."""
        return self.hidden * (self.inputs + 1) + self.classes * (self.hidden + 1)

    def parts(self, flat: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Split flat weights into views W1 (inputs, hidden), b1, W2 (hidden, classes) and b2."""
        shapes = (self.inputs, self.hidden), (self.hidden,), (self.hidden, self.classes)
        views, start = [], 0
        for shape in (*shapes, (self.classes,)):
            stop = start + int(np.prod(shape))
            views.append(flat[start:stop].reshape(shape))
            start = stop
        return views[0], views[1], views[2], views[3]

    def initial(self, rng: np.random.Generator) -> Arrays:
        """Return an initial state for `adam_step`: random weights, zero moments, and step 0.

        All weights and biases of a layer are U(-1, 1) / sqrt(inputs of the layer), as in PyTorch.
        """
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
        weights = rng.uniform(-1, 1, self.size)
        first, first_bias, second, second_bias = self.parts(weights)
        for part in (first, first_bias):
            part /= np.sqrt(self.inputs)
        for part in (second, second_bias):
            part /= np.sqrt(self.hidden)
        zeros = np.zeros_like(weights)
        return {"weights": weights, "mean": zeros, "square": zeros.copy(), "steps": np.zeros(1)}

    def logits(self, weights: Floats, inputs: Floats) -> Floats:
        """Return the logits of a batch of inputs: (batch, classes)."""
        first, first_bias, second, second_bias = self.parts(weights)
        logits: Floats = np.maximum(inputs @ first + first_bias, 0) @ second + second_bias
        return logits

    def gradient(self, weights: Floats, inputs: Floats, targets: Floats) -> tuple[float, Floats]:
        """Return the mean cross entropy with soft targets, in nats, and its gradient: (size,)."""
        first, first_bias, second, second_bias = self.parts(weights)
        before = inputs @ first + first_bias
        active = np.maximum(before, 0)
        logits = active @ second + second_bias
        loss = -float((targets * special.log_softmax(logits, axis=1)).sum()) / len(inputs)
        back = (special.softmax(logits, axis=1) - targets) / len(inputs)
        hidden = (back @ second.T) * (before > 0)
        gradient = np.empty_like(weights)
        for part, value in zip(
            self.parts(gradient),
            (inputs.T @ hidden, hidden.sum(axis=0), active.T @ back, back.sum(axis=0)),
            strict=True,
        ):
            part[...] = value
        return loss, gradient


def adam_step(state: Arrays, gradient: Floats, lr: float) -> None:
    """Make one step of Adam in place, with betas 0.9 and 0.999 and epsilon 1e-8, as in PyTorch.

    Source: Kingma & Ba 2015, arXiv:1412.6980, algorithm 1.
    """
    state["steps"] += 1
    count = float(state["steps"][0])
    mean, square = state["mean"], state["square"]
    mean += (1 - _BETAS[0]) * (gradient - mean)
    square += (1 - _BETAS[1]) * (gradient**2 - square)
    scale = np.sqrt(square / (1 - _BETAS[1] ** count)) + _EPSILON
    state["weights"] -= lr / (1 - _BETAS[0] ** count) * mean / scale


def trained(
    config: Any,
    network: ReluNetwork,
    inputs: Floats,
    labels: Ints,
    measured: Callable[[Floats, float], Metrics],
) -> ArrayProcess:
    """Return the training of a network by steps of Adam on all points, mixed with random partners.

    Args:
        config: Configuration with the fields `law`, `lr`, `steps_per_epoch`, `epochs` and `seed`.
        network: The network.
        inputs: Points, (points, inputs).
        labels: Their classes, (points,).
        measured: Takes the weights and the mean loss of an epoch's steps; returns its metrics.
    """
    targets, num = np.eye(network.classes)[labels], config.steps_per_epoch

    def advance(epoch: int, state: Arrays) -> Metrics:
        rng, losses = stream(config.seed, "mixing", epoch), np.empty(num)
        partners = rng.integers(len(inputs), size=(num, len(inputs)))
        lams = weights_of(config.law, num, rng)  # one per step
        for step, (partner, lam) in enumerate(zip(partners, lams, strict=True)):
            losses[step], gradient = network.gradient(
                state["weights"],
                lam * inputs + (1 - lam) * inputs[partner],
                lam * targets + (1 - lam) * targets[partner],
            )
            adam_step(state, gradient, config.lr)
        found = measured(state["weights"], float(losses.mean()))
        return {"step": float((epoch + 1) * num), **found}

    weights = network.initial(stream(config.seed, "initial weights"))
    return ArrayProcess(epochs=config.epochs, state=weights, advance=advance)
