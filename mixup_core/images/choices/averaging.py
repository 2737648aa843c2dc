"""Averaging: which average of its weights a run keeps beside them, one of the dataclasses here.

Each has a `tag`, its fields, and

    of(network)    the average of a network's weights, to be updated after each step

The file is read when a study is: it imports torch where it computes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Range

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.swa_utils import AveragedModel


@dataclass(frozen=True, kw_only=True, slots=True)
class Ema(Checked):
    """An exponential moving average over steps of weights and of BatchNorm's statistics.

        average <- decay * average + (1 - decay) * weights, after each step; first the weights

    It is measured beside the last weights, as `test/error_averaged`, and changes nothing else.

    Source: Polyak and Juditsky 1992; Izmailov et al. 2018, arXiv:1803.05407, for the statistics.
    """

    tag: ClassVar = "ema"

    decay: Annotated[float, Range(0, 1, "()")]
    """Share of the average that stays at each step."""

    def of(self, network: "nn.Module") -> "AveragedModel":
        """Return the average of a network's weights, which before the first step are its own."""
        from mixup_core.images.average import Average

        return Average(network, self.decay)


Averaging = Ema
"""Add a member by writing its class and naming it here."""
