"""Optimizers: base class and built-in optimizers; plugins may add more."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from mixup_core.arrays import nn, torch
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.config.limits import NonNegative, Positive, Range
from mixup_core.rules import require

MAX_RATE = 1000.0
"""Largest allowed learning rate; a larger one is probably a typing error. A step of Adam moves each
weight by about the learning rate, and so does a step of SGD with a gradient of 1.
"""

Rate = Annotated[float, Range(0, MAX_RATE, "(]")]
"""Type of a learning rate, limited to (0, MAX_RATE]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Optimizer(Checked, ABC):
    """Base class of the settings of an optimizer; study files select a subclass by its name.

    The file of an optimizer is imported whenever a study is read, so import torch inside the
    methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Optimizer, Share
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class RmsProp(Optimizer):
        ...     name = "rmsprop"
        ...     decay: Share = 0.99
        ...     def over(self, parameters):
        ...         import torch
        ...         return torch.optim.RMSprop(parameters, lr=self.lr, alpha=self.decay)
        >>> RmsProp(lr=0.01)
        RmsProp(lr=0.01, clip_norm=None, decay=0.99)
    """

    catalogue: ClassVar[Catalogue["Optimizer"]] = Catalogue("optimizer")

    name: ClassVar[str]
    """Name of the optimizer in study files."""

    lr: Rate = 1e-3
    """Learning rate, before the factor of the schedule."""
    clip_norm: Positive | None = None
    """Largest Euclidean norm of all gradients together; larger gradients are scaled down to it
    before each step. None: no clipping.
    """

    @abstractmethod
    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        """Return a new PyTorch optimizer for the parameters of a network.

        The optimizer's state is stored after an epoch, so it must consist of tensors and plain
        values. Training sets the learning rate of all parameter groups before each step.

        Args:
            parameters: All parameters of the network.

        Example:
            >>> import torch
            >>> from mixup_core.images.choices.optimizers import Sgd
            >>> optimizer = Sgd(lr=0.1, momentum=0.9).over(torch.nn.Linear(64, 10).parameters())
            >>> optimizer.param_groups[0]["lr"], len(optimizer.param_groups[0]["params"])
            (0.1, 2)
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Decaying(Optimizer):
    """Base class of optimizers with weight decay."""

    weight_decay: NonNegative = 0.0
    """Strength of weight decay; 0: none."""
    decayed: Literal["all", "weights"] = "all"
    """Parameters with weight decay: `all`, or `weights`, the parameters of at least two dimensions,
    which leaves out biases and normalisation layers.
    """

    def check(self) -> None:
        has_any = self.weight_decay > 0 or self.decayed == "all"
        rule = "`decayed: weights` needs a weight_decay above 0"
        require(has_any, rule, self, "decayed", "weight_decay")

    def groups(self, parameters: "Iterable[nn.Parameter]") -> "Iterable[Any]":
        """Return a network's parameters in the form that PyTorch's optimizers accept.

        With `decayed: weights` there are two groups: parameters of at least two dimensions, which
        have weight decay, and all others, such as biases, which have none. With `decayed: all` the
        parameters are returned as they are.
        """
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
    """Adam with betas .9 and .999.

    Example:
        In a study file: `optimizer: {name: adam, lr: 0.01}`.

        >>> import torch
        >>> from mixup_core.images.choices.optimizers import Adam
        >>> optimizer = Adam(lr=0.01).over(torch.nn.Linear(2, 1).parameters())
        >>> type(optimizer).__name__, optimizer.defaults["lr"], optimizer.defaults["weight_decay"]
        ('Adam', 0.01, 0.0)
    """

    name: ClassVar = "adam"

    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        decay = self.weight_decay
        return torch.optim.Adam(self.groups(parameters), lr=self.lr, weight_decay=decay, fused=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamW(Decaying):
    """Adam with decoupled weight decay, betas .9 and .999.

    Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.

    Example:
        In a study file: `optimizer: {name: adamw, weight_decay: 0.05}`.

        >>> import torch
        >>> from mixup_core.images.choices.optimizers import AdamW
        >>> optimizer = AdamW(weight_decay=0.05).over(torch.nn.Linear(2, 1).parameters())
        >>> type(optimizer).__name__, optimizer.defaults["lr"], optimizer.defaults["weight_decay"]
        ('AdamW', 0.001, 0.05)
    """

    name: ClassVar = "adamw"

    weight_decay: NonNegative = 0.01
    """Strength of weight decay: each step subtracts rate * weight_decay * weight from each weight.
    """

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        decay = self.weight_decay
        return torch.optim.AdamW(
            self.groups(parameters), lr=self.lr, weight_decay=decay, fused=True
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd(Decaying):
    """Stochastic gradient descent, with momentum if set.

    Example:
        In a study file: `optimizer: {name: sgd, lr: 0.1, momentum: 0.9}`.

        >>> import torch
        >>> from mixup_core.images.choices.optimizers import Sgd
        >>> optimizer = Sgd(lr=0.1, momentum=0.9).over(torch.nn.Linear(2, 1).parameters())
        >>> type(optimizer).__name__, optimizer.defaults["lr"], optimizer.defaults["weight_decay"]
        ('SGD', 0.1, 0.0)
    """

    name: ClassVar = "sgd"

    momentum: Annotated[float, Range(0, 1, "[)")] = 0.0
    """Momentum: share of the last step that is added to the next."""
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""
    nesterov: bool = False
    """True: use Nesterov momentum; needs `momentum` above 0."""

    def check(self) -> None:
        super(Sgd, self).check()
        has_any = self.momentum > 0 or not self.nesterov
        require(has_any, "nesterov needs a momentum above 0", self, "nesterov", "momentum")

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        return torch.optim.SGD(
            self.groups(parameters),
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
            fused=True,
        )


Optimizer.catalogue.add(Adam, AdamW, Sgd)
