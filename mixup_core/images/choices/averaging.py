"""Averaging: moving averages of the weights that a run can keep.

Each kind of average is a dataclass with a `tag`, its fields, and

    of(network)    the average of a network's weights, to be updated after each step

This file is imported whenever a study is read, so import torch inside the methods.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.arrays import nn
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Range

if TYPE_CHECKING:
    from torch.optim.swa_utils import AveragedModel


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
        >>> from mixup_core.images.choices.averaging import Ema
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
        from mixup_core.images.average import Average

        return Average(network, self.decay)


Averaging = Ema
"""Union of all averages. To add one, write its class and add it here."""
