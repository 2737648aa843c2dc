"""WeightNorm: Euclidean norm of all parameters."""

import math
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import torch
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightNorm(Probe):
    """Euclidean norm of all parameters together.

    Example:
        In a study file: `probes: [{weight-norm: 5}]`.

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from mixup_core.images.probes.weight_norm import WeightNorm
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
