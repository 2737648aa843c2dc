"""Optimizer: how a step follows from a gradient; an open choice."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.rules import require
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import NonNegative, Range

if TYPE_CHECKING:
    import torch
    from torch import nn

MAX_RATE = 1000.0
"""Beyond it a rate is a slip of the pen: a step of Adam moves every weight by about the rate,
whatever its gradient is, and one of SGD by as much at a gradient of 1."""

Rate = Annotated[float, Range(0, MAX_RATE, "(]")]
"""A learning rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Optimizer(Checked, ABC):
    """Makes an optimizer of PyTorch. Its file is read when a study is: torch is imported late."""

    catalogue: ClassVar[Catalogue["Optimizer"]] = Catalogue("optimizer")

    name: ClassVar[str]
    """Name of the optimizer in study files."""

    lr: Rate = 1e-3
    """Learning rate before its schedule."""

    @abstractmethod
    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters, a new one per run.

        Its state must be tensors and plain values, for it is stored after an epoch. The learning
        rate of its groups is set before each step.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam(Optimizer):
    """Adam with betas .9 and .999; a new one per run."""

    name: ClassVar = "adam"

    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        decay = self.weight_decay
        return torch.optim.Adam(parameters, lr=self.lr, weight_decay=decay, fused=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamW(Optimizer):
    """Adam with decoupled weight decay, betas .9 and .999; a new one per run.

    Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
    """

    name: ClassVar = "adamw"

    weight_decay: NonNegative = 0.01
    """Taken from the weights, times the rate, at every step."""

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        decay = self.weight_decay
        return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=decay, fused=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd(Optimizer):
    """Stochastic gradient descent; a new one per run."""

    name: ClassVar = "sgd"

    momentum: Annotated[float, Range(0, 1, "[)")] = 0.0
    """Share of the last step that goes into the next."""
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""
    nesterov: bool = False
    """True if the momentum looks ahead; it needs one."""

    def check(self) -> None:
        """Check what no limit says.

        Raises:
            RuleError: If Nesterov's rule has no momentum.
        """
        has_any = self.momentum > 0 or not self.nesterov
        require(has_any, "nesterov needs a momentum above 0", self, "nesterov", "momentum")

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


Optimizer.catalogue.add(Adam, AdamW, Sgd)
