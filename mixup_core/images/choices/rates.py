"""LrSchedule: schedules of the learning rate.

Each schedule is a dataclass with a `tag`, its fields, and

    warm_up                                   epochs of warm-up, before the schedule itself
    factor(step, steps_per_epoch, epochs)     number that multiplies the learning rate at a step
    in_epoch(epoch, epochs)                   values that decide the factors of an epoch

The values of `in_epoch` enter the keys by which results are stored.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Range, Share, Whole
from mixup_core.laws.schedules import rounded
from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A constant learning rate.

    Example:
        In a study file: `lr_schedule: constant`.

        >>> from mixup_core.images.choices.rates import Constant
        >>> Constant().factor(step=7, steps_per_epoch=10, epochs=2)
        1.0
    """

    tag: ClassVar = "constant"
    warm_up: ClassVar = 0

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor that multiplies the learning rate at a 0-based step of the run."""
        del step, steps_per_epoch, epochs
        return 1.0

    def in_epoch(self, epoch: int, epochs: int) -> Any:
        """Return None: the learning rate has the same factor, 1, in each epoch."""
        del epoch, epochs


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
        """Return values that decide the learning rate in an epoch, such as ("warm-up", 5)."""
        if epoch < self.warm_up:
            return "warm-up", self.warm_up
        return self._in_epoch(epoch - self.warm_up, epochs)

    def _factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor after the warm-up; `step` and `epochs` are counted from its end."""
        raise NotImplementedError

    def _in_epoch(self, epoch: int, epochs: int) -> Any:
        """Return the values that determine an epoch's factors; `epoch` 0 follows the warm-up."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp(_WarmedUp):
    """Linear warm-up, then a constant rate.

    Example:
        In a study file: `lr_schedule: {warm-up: {warm_up: 2}}`.

        >>> from mixup_core.images.choices.rates import WarmUp
        >>> schedule = WarmUp(warm_up=2)
        >>> [round(schedule.factor(step, steps_per_epoch=1, epochs=4), 4) for step in range(4)]
        [0.5, 1.0, 1.0, 1.0]
    """

    tag: ClassVar = "warm-up"

    def _factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        del step, steps_per_epoch, epochs
        return 1.0

    def _in_epoch(self, epoch: int, epochs: int) -> Any:
        del epoch, epochs


@dataclass(frozen=True, kw_only=True, slots=True)
class Cosine(_WarmedUp):
    """Cosine schedule: the factor of the learning rate falls from 1 to `end`, at each step.

        end + (1 - end) (1 + cos(pi step / steps)) / 2

    Source: Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5, without restarts.

    Example:
        In a study file: `lr_schedule: {cosine: {end: 0.1}}`.

        >>> from mixup_core.images.choices.rates import Cosine
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
        del epoch
        return "cosine", self.warm_up, epochs, self.end


@dataclass(frozen=True, kw_only=True, slots=True)
class Step(_WarmedUp):
    """Step schedule: the learning rate is multiplied by `gamma` at the start of given epochs.

    Example:
        In a study file: `lr_schedule: {step: {at: [2, 3]}}`.

        >>> from mixup_core.images.choices.rates import Step
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
        del epochs
        return self._factor_in(step // steps_per_epoch)

    def _in_epoch(self, epoch: int, epochs: int) -> Any:
        del epochs
        factor = self._factor_in(epoch)
        return None if factor == 1 else rounded(factor)

    def _factor_in(self, epoch: int) -> float:
        return self.gamma ** sum(at <= epoch + self.warm_up for at in self.at)


LrSchedule = Constant | WarmUp | Cosine | Step
"""Union of all schedules of the learning rate. To add one, write its class and add it here."""
