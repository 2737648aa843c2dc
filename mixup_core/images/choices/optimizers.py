"""Optimizers, schedules of their learning rate, and the average of the weights that they change.

Plugins may add optimizers. To add a schedule, write its class and add it to `LrSchedule`. The file
is imported whenever a study is read, so import torch inside the methods.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mixup_core.arrays import nn, torch
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range, Share, Whole
from mixup_core.laws.schedules import rounded
from mixup_core.rules import require

if TYPE_CHECKING:
    from torch.optim.swa_utils import AveragedModel


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

    weight_decay: NonNegative
    """Strength of weight decay; 0: none."""
    decayed: Literal["all", "weights"] = "all"
    """Parameters with weight decay: `all`, or `weights`, the parameters of at least two dimensions,
    which leaves out biases and normalisation layers.
    """

    def check(self) -> None:
        has_any = bool(self.weight_decay) or self.decayed == "all"
        rule = "`decayed: weights` needs a weight_decay above 0"
        require(has_any, rule, self, "decayed", "weight_decay")

    def _groups(self, parameters: "Iterable[nn.Parameter]") -> "Iterable[Any]":
        """Return a network's parameters, in two groups with `decayed: weights`."""
        if self.decayed == "all":
            return parameters
        every = list(parameters)
        rest = {"params": [part for part in every if part.ndim >= 2]}
        plain = {"params": [part for part in every if part.ndim < 2], "weight_decay": 0.0}
        return [group for group in (rest, plain) if group["params"]]

    def _made(
        self, kind: Any, parameters: "Iterable[nn.Parameter]", **more: Any
    ) -> "torch.optim.Optimizer":
        """Return a PyTorch optimizer of a class, with this rate, weight decay and `more`."""
        settings = {"lr": self.lr, "weight_decay": self.weight_decay, "fused": True, **more}
        optimizer: torch.optim.Optimizer = kind(self._groups(parameters), **settings)
        return optimizer


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

    # Frozen: each `name`, `tag`, field name and default in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name: ClassVar = "adam"

    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        return self._made(torch.optim.Adam, parameters)


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
        return self._made(torch.optim.AdamW, parameters)


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
        has_any = bool(self.momentum) or not self.nesterov
        require(has_any, "nesterov needs a momentum above 0", self, "nesterov", "momentum")

    def over(self, parameters: "Iterable[nn.Parameter]") -> "torch.optim.Optimizer":
        momentum, nesterov = self.momentum, self.nesterov
        return self._made(torch.optim.SGD, parameters, momentum=momentum, nesterov=nesterov)


Optimizer.catalogue.add(Adam, AdamW, Sgd)


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A constant learning rate.

    Example:
        In a study file: `lr_schedule: constant`.

        >>> from mixup_core.images.choices.optimizers import Constant
        >>> Constant().factor(step=7, steps_per_epoch=10, epochs=2)
        1.0
    """

    tag: ClassVar = "constant"
    warm_up: ClassVar = 0

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor that multiplies the learning rate at a 0-based step of the run."""
        return 1.0

    def in_epoch(self, epoch: int, epochs: int) -> Any:
        """Return None: the factor is 1 in every epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _WarmedUp(Checked):
    """Base class of schedules that can begin with a linear warm-up.

    In the warm-up, the factor is `(step + 1) / warm-up steps`.

    Source: Goyal et al. 2017, arXiv:1706.02677, section 2.2 (gradual warm-up, from near zero).
    """

    warm_up: Whole = 0
    """Number of epochs of warm-up, after which the schedule itself starts."""

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor that multiplies the learning rate at a 0-based step of the run."""
        warm_steps = self.warm_up * steps_per_epoch
        if step < warm_steps:
            return (step + 1) / warm_steps
        return self._factor(step - warm_steps, steps_per_epoch, epochs - self.warm_up)

    def in_epoch(self, epoch: int, epochs: int) -> Any:
        """Return values that decide the learning rate in an epoch, such as ("warm-up", 5).

        They enter the keys by which results are stored. None: the factor is 1.
        """
        if epoch < self.warm_up:
            return "warm-up", self.warm_up
        return self._in_epoch(epoch - self.warm_up, epochs)

    def _factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor after the warm-up; `step` and `epochs` are counted from its end."""
        return 1.0

    def _in_epoch(self, epoch: int, epochs: int) -> Any:
        """Return the values that determine an epoch's factors; `epoch` 0 follows the warm-up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp(_WarmedUp):
    """Linear warm-up, then a constant rate.

    Example:
        In a study file: `lr_schedule: {warm-up: {warm_up: 2}}`.

        >>> from mixup_core.images.choices.optimizers import WarmUp
        >>> schedule = WarmUp(warm_up=2)
        >>> [round(schedule.factor(step, steps_per_epoch=1, epochs=4), 4) for step in range(4)]
        [0.5, 1.0, 1.0, 1.0]
    """

    tag: ClassVar = "warm-up"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cosine(_WarmedUp):
    """Cosine schedule: the factor of the learning rate falls from 1 to `end`, at each step.

        end + (1 - end) (1 + cos(pi step / steps)) / 2

    Source: Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5, without restarts.

    Example:
        In a study file: `lr_schedule: {cosine: {end: 0.1}}`.

        >>> from mixup_core.images.choices.optimizers import Cosine
        >>> schedule = Cosine(end=0.1)
        >>> [round(schedule.factor(step, steps_per_epoch=1, epochs=4), 4) for step in range(4)]
        [1.0, 0.8682, 0.55, 0.2318]
    """

    tag: ClassVar = "cosine"

    end: Share = 0.0
    """Factor that the schedule approaches; the last step is just above it."""

    def _factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        wave = (1 + math.cos(math.pi * step / (steps_per_epoch * epochs))) / 2
        return self.end + (1 - self.end) * wave

    def _in_epoch(self, epoch: int, epochs: int) -> Any:
        return "cosine", self.warm_up, epochs, self.end


@dataclass(frozen=True, kw_only=True, slots=True)
class Step(_WarmedUp):
    """Step schedule: the learning rate is multiplied by `gamma` at the start of given epochs.

    Example:
        In a study file: `lr_schedule: {step: {at: [2, 3]}}`.

        >>> from mixup_core.images.choices.optimizers import Step
        >>> schedule = Step(at=(2, 3))
        >>> [round(schedule.factor(step, steps_per_epoch=1, epochs=4), 4) for step in range(4)]
        [1.0, 1.0, 0.1, 0.01]
    """

    tag: ClassVar = "step"

    at: tuple[Count, ...]
    """Epochs (0-based) at whose start the rate changes: increasing, none within the warm-up."""
    gamma: Annotated[float, Range(0, 1, "(]")] = 0.1
    """Factor of the learning rate at each of these epochs."""

    def check(self) -> None:
        grow = list(self.at) == sorted(set(self.at))
        fits = grow and (not self.at or self.at[0] >= self.warm_up)
        require(fits, "the epochs in `at` must increase, from warm_up on", self, "at", "warm_up")

    def _factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        return self._factor_in(step // steps_per_epoch)

    def _in_epoch(self, epoch: int, epochs: int) -> Any:
        factor = self._factor_in(epoch)
        return None if factor == 1 else rounded(factor)

    def _factor_in(self, epoch: int) -> float:
        return self.gamma ** sum(at <= epoch + self.warm_up for at in self.at)


LrSchedule = Constant | WarmUp | Cosine | Step
"""Union of all schedules of the learning rate. To add one, write its class and add it here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ema(Checked):
    """Exponential moving average of weights and BatchNorm statistics over steps.

        average <- decay * average + (1 - decay) * weights, after each step

    After the first step, the average equals the weights. The error of the averaged weights is
    recorded as `test/error_averaged`; training does not depend on the average.

    Source: Polyak and Juditsky 1992; Izmailov et al. 2018, arXiv:1803.05407, on BatchNorm
    statistics of averaged weights.

    Example:
        In a study file: `averaging: {ema: {decay: 0.99}}`.

        >>> import torch
        >>> from mixup_core.images.choices.optimizers import Ema
        >>> network = torch.nn.Linear(1, 1, bias=False)
        >>> average = Ema(decay=0.75).of(network)
        >>> for weight in (1.0, 2.0):  # each step of training
        ...     network.weight.data = torch.tensor([[weight]])
        ...     average.update_parameters(network)
        >>> average.module.weight.item()  # 0.75 * 1 + 0.25 * 2
        1.25
    """

    tag: ClassVar = "ema"

    decay: Annotated[float, Range(0, 1, "()")]
    """Weight of the old average in each step."""

    def of(self, network: "nn.Module") -> "AveragedModel":
        """Return a moving average of a network's weights; at first, it is a copy of the network."""
        from mixup_core.images.networks import Average

        return Average(network, self.decay)


Averaging = Ema
"""Union of all averages. To add one, write its class and add it here."""
