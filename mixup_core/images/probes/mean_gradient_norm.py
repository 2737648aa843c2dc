"""MeanGradientNorm: norm of the mean gradient over many draws, with its Monte Carlo error."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mixup_core.arrays import torch
from mixup_core.config.limits import Range
from mixup_core.images.probes.gradient_norm import gradient_of, norm_of
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric

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
    that mean.) Without mixing, one draw is enough. As for `GradientNorm`, weight decay is left out
    and BatchNorm uses its running statistics.

    Source: Liu et al. 2023, arXiv:2303.01475, section 5.

    Example:
        In a study file: `probes: [{mean-gradient-norm: {draws: 50}}]`.

        >>> from mixup_core.images.probes.mean_gradient_norm import MeanGradientNorm
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
        if not subject.how.is_mixed:
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
