"""Averaging: which average of its weights a run keeps beside them, one of the dataclasses here.

Each has a `tag`, its fields, and

    of(network)    the average of a network's weights, to be updated after each step

The file is read when a study is: it imports torch where it computes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.rules import require

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.swa_utils import AveragedModel


@dataclass(frozen=True, kw_only=True, slots=True)
class Ema:
    """An exponential moving average over steps of weights and of BatchNorm's statistics.

        average <- decay * average + (1 - decay) * weights, after each step; first the weights

    It is measured beside the last weights, as `test/error_averaged`, and changes nothing else.

    Source: Polyak and Juditsky 1992; Izmailov et al. 2018, arXiv:1803.05407, for the statistics.
    """

    tag: ClassVar = "ema"

    decay: float
    """In (0, 1)."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the decay is out of range.
        """
        require(0 < self.decay < 1, "0 < decay < 1", self, "decay")

    def of(self, network: "nn.Module") -> "AveragedModel":
        """Return the average of a network's weights, which before the first step are its own."""
        from mixup_core.images.average import Average

        return Average(network, self.decay)


Averaging = Ema
"""To add one is to write it and to name it here."""
