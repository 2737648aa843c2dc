"""Norms of gradients, of their mean and their noise, and of weights."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Tensor, torch
from mixup_core.config.limits import Range
from mixup_core.images.probes.probe import Planned, Probe, Subject
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

        >>> from mixup_core.images.probes.norms import GradientNorm
        >>> list(GradientNorm().metrics)
        ['train/gradient_norm']
    """

    # Frozen: each `tag`, field name, default and metric name in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
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
    """Return the gradient of the epoch's objective, averaged over all mixed training images."""
    weights = [part for part in subject.network.parameters() if part.requires_grad]
    total = [torch.zeros_like(part, dtype=torch.float64) for part in weights]
    for size, gradients in batch_gradients(subject, draw):
        for sum_, gradient in zip(total, gradients, strict=True):
            sum_.add_(gradient, alpha=size / len(subject.images))
    return total


def norm_of(parts: "list[Tensor]") -> float:
    """Return the Euclidean norm of the values of all tensors together."""
    return math.sqrt(sum(torch.stack([part.square().sum() for part in parts]).tolist()))


# Frozen: this number, and the order of the sums over draws. After a change, new runs record other
# values than stored runs of the same key; `make same-bits BASE=main` fails for runs with the probe.
_GROUPS = 10
"""Number of groups of draws, for products between groups and for the jackknife."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanGradientNorm(Probe):
    """Norm of the expected gradient of the objective, estimated without the noise of the draws.

    The draws of partners and weights are divided into at most ten groups; group k has n_k draws and
    the mean gradient G_k. Products of different groups give an unbiased estimate of the squared
    norm:

        sum_{k != l} n_k n_l <G_k, G_l> / sum_{k != l} n_k n_l

    The norm is the root of this estimate, or 0 if it is negative. Its error is estimated by the
    jackknife over the groups. (The norm of the mean over all draws would include the variance of
    that mean.) One draw is enough if nothing is mixed and `data.views` is `single`. As for
    `GradientNorm`, weight decay is left out and BatchNorm uses its running statistics.

    Source: Liu et al. 2023, arXiv:2303.01475, section 5.

    Example:
        In a study file: `probes: [{mean-gradient-norm: {draws: 50}}]`.

        >>> from mixup_core.images.probes.norms import MeanGradientNorm
        >>> MeanGradientNorm(draws=50, every=5)
        MeanGradientNorm(every=5, draws=50)
    """

    tag: ClassVar = "mean-gradient-norm"
    metrics: ClassVar = {
        "train/mean_gradient_norm": Metric(
            label="norm of the mean gradient of the objective", least=0.0
        ),
        "train/mean_gradient_norm_error": Metric(
            label="Monte Carlo error of the norm of the mean gradient", least=0.0
        ),
    }

    draws: Annotated[int, Range(3, 1_000_000)] = 200
    """Number of draws of partners and weights."""

    def measure(self, subject: Subject) -> dict[str, float]:
        if not subject.how.is_mixed and subject.images.views == "single":
            norm = norm_of(gradient_of(subject))
            return dict(zip(self.metrics, (norm, 0.0), strict=True))
        sums = []
        for group in range(min(_GROUPS, self.draws)):
            total = gradient_of(subject, group)
            for draw in range(group + _GROUPS, self.draws, _GROUPS):
                for part, more in zip(total, gradient_of(subject, draw), strict=True):
                    part.add_(more)
            sums.append(torch.cat([part.flatten() for part in total]))
        stacked = torch.stack(sums)
        products = stacked @ stacked.T
        counts = [len(range(group, self.draws, _GROUPS)) for group in range(len(sums))]
        return dict(zip(self.metrics, norm_and_error(products.tolist(), counts), strict=True))


def corrections_of_probes(config: Any) -> int:
    """Return 1 if a correction of `MeanGradientNorm` changed a configuration's results; else 0.

    Before, it used a single draw of the weights of two views in epochs without mixing.
    """
    has_probe = any(isinstance(probe, MeanGradientNorm) for probe in config.probes)
    epochs = map(config.in_epoch, range(config.epochs if has_probe else 0))
    return int(config.data.views != "single" and not all(epoch.is_mixed for epoch in epochs))


def norm_and_error(products: list[list[float]], counts: list[int]) -> tuple[float, float]:
    """Return the norm of an expected gradient and its jackknife error, from groups of draws."""

    def norm_of(groups: list[int]) -> float:
        pairs = [(k, other) for k in groups for other in groups if k != other]
        total = math.fsum(products[k][other] for k, other in pairs)
        return math.sqrt(max(0.0, total / sum(counts[k] * counts[other] for k, other in pairs)))

    groups = list(range(len(counts)))
    left_out = [norm_of([other for other in groups if other != k]) for k in groups]
    mean = math.fsum(left_out) / len(groups)
    spread = math.fsum((value - mean) ** 2 for value in left_out)
    return norm_of(groups), math.sqrt(spread * (len(groups) - 1) / len(groups))


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientNoise(Probe):
    """Root mean squared distance of a batch's gradient from the mean over all batches.

    The gradients are those of the epoch's objective, for one new draw of partners and weights, so
    that under mixup the noise of the draws is included. The sum of squares over the batches is
    divided by their number minus 1.

    Source: slides on data valuation for mixup, where it is called sigma.

    Example:
        In a study file: `probes: [gradient-noise]`.

        >>> from mixup_core.images.probes.norms import GradientNoise
        >>> list(GradientNoise().metrics)
        ['train/gradient_noise']
    """

    tag: ClassVar = "gradient-noise"
    metrics: ClassVar = {
        "train/gradient_noise": Metric(label="standard deviation of the batch gradient", least=0.0)
    }

    def lacks(self, planned: Planned, metric: str) -> str | None:
        has_more = planned.num_images > planned.config.batch_size
        return None if has_more else "an epoch has a single batch; set a smaller batch_size"

    def measure(self, subject: Subject) -> dict[str, float]:
        squares, total, count = torch.zeros((), dtype=torch.float64), torch.zeros(1), 0
        for _, parts in batch_gradients(subject):
            gradient = torch.cat([part.flatten() for part in parts]).double()
            squares, total = (
                squares.to(gradient) + gradient @ gradient,
                total.to(gradient) + gradient,
            )
            count += 1
        spread = float(squares - total @ total / count) / (count - 1)
        return {"train/gradient_noise": math.sqrt(max(0.0, spread))}


@dataclass(frozen=True, kw_only=True, slots=True)
class InputGradientNorm(Probe):
    """Mean norm of the loss gradient with respect to the pixels, on validation and test images.

    Example:
        In a study file: `probes: [input-gradient-norm]`.

        >>> from mixup_core.images.probes.norms import InputGradientNorm
        >>> list(InputGradientNorm().metrics)
        ['test/input_gradient_norm', 'val/input_gradient_norm']
    """

    tag: ClassVar = "input-gradient-norm"
    metrics: ClassVar = {
        "test/input_gradient_norm": Metric(label="input-gradient norm, test images", least=0.0),
        "val/input_gradient_norm": Metric(
            label="input-gradient norm, validation images", least=0.0
        ),
    }

    def measure(self, subject: Subject) -> dict[str, float]:
        from mixup_core.images.forward import input_gradient

        found = {}
        for split, images in subject.held_out.items():
            norms = []
            for part in images.parts:
                own, labels = images[part], images.labels[part]
                gradient = input_gradient(subject.logits, subject.loss, own, labels)
                norms.append(gradient.flatten(1).norm(dim=1).double())
            found[f"{split}/input_gradient_norm"] = float(torch.cat(norms).mean())
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightNorm(Probe):
    """Euclidean norm of all parameters together.

    Example:
        In a study file: `probes: [{weight-norm: 5}]`.

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from mixup_core.images.probes.norms import WeightNorm
        >>> network = torch.nn.Linear(2, 1, bias=False)
        >>> network.weight.data = torch.tensor([[3.0, 4.0]])
        >>> WeightNorm().measure(SimpleNamespace(network=network))
        {'train/weight_norm': 5.0}
    """

    tag: ClassVar = "weight-norm"
    metrics: ClassVar = {"train/weight_norm": Metric(label="weight norm", least=0.0)}

    def measure(self, subject: Subject) -> dict[str, float]:
        weights = [part.detach().double() for part in subject.network.parameters()]
        squares = torch.stack([part.square().sum() for part in weights]).tolist()
        return {"train/weight_norm": math.sqrt(sum(squares))}
