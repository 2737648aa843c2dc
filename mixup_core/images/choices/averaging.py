"""Averaging: which average of its weights a run keeps beside them. Plain values."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import require


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


Averaging = Ema
