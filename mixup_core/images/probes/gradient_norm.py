"""GradientNorm: norm of the objective's gradient; small near a stationary point."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Tensor, torch
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientNorm(Probe):
    """Euclidean norm of the mean over all batches of the gradient of the epoch's objective.

    The probe uses one new draw of partners and weights, and no weight decay. BatchNorm uses its
    running statistics. Near a stationary point of the mixed objective, the noise of this draw
    dominates the norm; `MeanGradientNorm` averages over draws.

    Source: Liu et al. 2023, arXiv:2303.01475, section 5.

    Example:
        In a study file: `probes: [gradient-norm]`.

        >>> from mixup_core.images.probes.gradient_norm import GradientNorm
        >>> list(GradientNorm().metrics)
        ['train/gradient_norm']
    """

    tag: ClassVar = "gradient-norm"
    metrics: ClassVar = {
        "train/gradient_norm": Metric(label="gradient norm of the objective, one draw", least=0.0)
    }

    def measure(self, subject: Subject) -> dict[str, float]:
        return {"train/gradient_norm": norm_of(gradient_of(subject))}


def batch_gradients(subject: Subject, draw: int = 0) -> "Iterator[tuple[int, tuple[Tensor, ...]]]":
    """Yield the size of each mixed batch and the gradient of the epoch's objective on it."""
    objective = subject.how.objective
    weights = [part for part in subject.network.parameters() if part.requires_grad]
    for batch in subject.mixed(draw):
        minimised = objective.on(batch, subject.logits, subject.loss, subject.teacher)
        yield len(batch), torch.autograd.grad(minimised.loss, weights)


def gradient_of(subject: Subject, draw: int = 0) -> "list[Tensor]":
    """Return the gradient of the epoch's objective, averaged over all mixed training images.

    The result has one float64 tensor for each parameter of the network.
    """
    weights = [part for part in subject.network.parameters() if part.requires_grad]
    total = [torch.zeros_like(part, dtype=torch.float64) for part in weights]
    for size, gradients in batch_gradients(subject, draw):
        for sum_, gradient in zip(total, gradients, strict=True):
            sum_.add_(gradient, alpha=size / len(subject.images))
    return total


def norm_of(parts: "list[Tensor]") -> float:
    """Return the Euclidean norm of the values of all tensors together.

    The tensors' sums of squares are copied from the device in one transfer.
    """
    return math.sqrt(sum(torch.stack([part.square().sum() for part in parts]).tolist()))
