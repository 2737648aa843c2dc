"""Every: how often a probe measures; what all probes have in common."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count


@dataclass(frozen=True, kw_only=True, slots=True)
class Every(Checked):
    """Measured after some epochs on the network in evaluation mode; changes nothing in training.

    What a probe draws comes from streams of its own, and training images are seen unmixed (but for
    `MixupLoss` and `GradientNorm`) and not augmented.
    """

    views: ClassVar[Literal["single", "concat"] | None] = None
    """The views it is of; None: both."""

    every: Count | None = None
    """Epochs from one measurement to the next; it divides `epochs`. None: `eval_every`."""
