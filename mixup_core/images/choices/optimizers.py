"""Optimizer: how a step follows from a gradient; an open choice."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mixup_core.rules import require
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import NonNegative, Positive, Range

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
    clip_norm: Positive | None = None
    """Greatest Euclidean norm of the gradients of all parameters together: longer ones are scaled
    down to it before each step. None: they are used as they are."""

    @abstractmethod
    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters, a new one per run.

        Its state must be tensors and plain values, for it is stored after an epoch. The learning
        rate of its groups is set before each step.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Decaying(Optimizer):
    """Base of optimizers with weight decay."""

    weight_decay: NonNegative = 0.0
    """Strength of the weight decay."""
    decayed: Literal["all", "weights"] = "all"
    """Parameters that decay: all, or `weights` alone, those of two or more dimensions. That leaves
    out biases, and the scales and shifts of normalisation layers."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If parameters are left out of a decay of 0.
        """
        has_any = self.weight_decay > 0 or self.decayed == "all"
        rule = "`decayed: weights` needs a weight_decay above 0"
        require(has_any, rule, self, "decayed", "weight_decay")

    def groups(self, parameters: "Iterable[nn.Parameter]") -> "Iterable[Any]":
        """Return the parameters, in groups if some of them do not decay, as PyTorch takes them."""
        if self.decayed == "all":
            return parameters
        every = list(parameters)
        plain = [parameter for parameter in every if parameter.ndim < 2]
        rest = [parameter for parameter in every if parameter.ndim >= 2]
        groups: list[tuple[list[nn.Parameter], dict[str, float]]]
        groups = [(rest, {}), (plain, {"weight_decay": 0.0})]
        return [{"params": members, **own} for members, own in groups if members]


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam(Decaying):
    """Adam with betas .9 and .999; a new one per run."""

    name: ClassVar = "adam"

    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        decay = self.weight_decay
        return torch.optim.Adam(self.groups(parameters), lr=self.lr, weight_decay=decay, fused=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamW(Decaying):
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
        return torch.optim.AdamW(
            self.groups(parameters), lr=self.lr, weight_decay=decay, fused=True
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd(Decaying):
    """Stochastic gradient descent; a new one per run."""

    name: ClassVar = "sgd"

    momentum: Annotated[float, Range(0, 1, "[)")] = 0.0
    """Share of the last step that goes into the next."""
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""
    nesterov: bool = False
    """True if the momentum looks ahead; it needs one."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If Nesterov's rule has no momentum.
        """
        super(Sgd, self).check()
        has_any = self.momentum > 0 or not self.nesterov
        require(has_any, "nesterov needs a momentum above 0", self, "nesterov", "momentum")

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return PyTorch's optimizer of some parameters."""
        import torch

        return torch.optim.SGD(
            self.groups(parameters),
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
            fused=True,
        )


Optimizer.catalogue.add(Adam, AdamW, Sgd)
