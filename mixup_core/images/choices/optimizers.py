"""Optimizer: how a step follows from a gradient. Plain values."""

import math
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam:
    """Adam with betas .9 and .999; a new one per run."""

    name: ClassVar = "adam"

    lr: float = 1e-3
    """Learning rate before its schedule, positive and finite."""
    weight_decay: float = 0.0
    """L2 penalty added to the gradient, at least 0 and finite."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range.
        """
        _check_rates(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay, betas .9 and .999; a new one per run.

    Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
    """

    name: ClassVar = "adamw"

    lr: float = 1e-3
    """Learning rate before its schedule, positive and finite."""
    weight_decay: float = 0.01
    """Taken from the weights, times the rate, at every step; at least 0 and finite."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            RuleError: If a value is out of range.
        """
        _check_rates(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd:
    """Stochastic gradient descent; a new one per run."""

    name: ClassVar = "sgd"

    lr: float = 1e-3
    """Learning rate before its schedule, positive and finite."""
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


Optimizer = Adam | AdamW | Sgd


def _check_rates(optimizer: Optimizer) -> None:
    require(0 < optimizer.lr < math.inf, "0 < lr < inf", optimizer, "lr")
    decay = optimizer.weight_decay
    require(0 <= decay < math.inf, "0 <= weight_decay < inf", optimizer, "weight_decay")
