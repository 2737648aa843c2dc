"""Optimizer: how a step follows from a gradient, one of the dataclasses here.

Each has a `name`, its fields, and

    lr                  the learning rate before its schedule
    over(parameters)    PyTorch's optimizer of some parameters, a new one per run

The file is read when a study is: it imports torch where it computes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.rules import require

if TYPE_CHECKING:
    import torch
    from torch import nn

MAX_RATE = 1000.0
"""Beyond it a rate is a slip of the pen: a step of Adam moves every weight by about the rate,
whatever its gradient is, and one of SGD by as much at a gradient of 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam:
    """Adam with betas .9 and .999; a new one per run."""

    name: ClassVar = "adam"

    lr: float = 1e-3
    """Learning rate before its schedule, in (0, MAX_RATE]."""
    weight_decay: float = 0.0
    """L2 penalty added to the gradient, at least 0 and finite."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range.
        """
        _check_rates(self)

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        decay = self.weight_decay
        return torch.optim.Adam(parameters, lr=self.lr, weight_decay=decay, fused=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay, betas .9 and .999; a new one per run.

    Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
    """

    name: ClassVar = "adamw"

    lr: float = 1e-3
    """Learning rate before its schedule, in (0, MAX_RATE]."""
    weight_decay: float = 0.01
    """Taken from the weights, times the rate, at every step; at least 0 and finite."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range.
        """
        _check_rates(self)

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        decay = self.weight_decay
        return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=decay, fused=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd:
    """Stochastic gradient descent; a new one per run."""

    name: ClassVar = "sgd"

    lr: float = 1e-3
    """Learning rate before its schedule, in (0, MAX_RATE]."""
    momentum: float = 0.0
    """In [0, 1)."""
    weight_decay: float = 0.0
    """L2 penalty added to the gradient, at least 0 and finite."""
    nesterov: bool = False
    """Whether the momentum looks ahead; it needs one."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range.
        """
        _check_rates(self)
        require(0 <= self.momentum < 1, "0 <= momentum < 1", self, "momentum")
        has_any = self.momentum > 0 or not self.nesterov
        require(has_any, "nesterov has a momentum", self, "nesterov", "momentum")

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        return torch.optim.SGD(
            parameters,
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
            fused=True,
        )


Optimizer = Adam | AdamW | Sgd
"""To add one is to write it and to name it here."""


def _check_rates(optimizer: Optimizer) -> None:
    require(0 < optimizer.lr <= MAX_RATE, "0 < lr <= 1000", optimizer, "lr")
    decay = optimizer.weight_decay
    require(0 <= decay < math.inf, "0 <= weight_decay < inf", optimizer, "weight_decay")
