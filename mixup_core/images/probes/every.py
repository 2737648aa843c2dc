"""Every: how often a probe measures; what all probes have in common."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Every:
    """Measured after some epochs on the network in evaluation mode; changes nothing in training.

    What a probe draws comes from streams of its own, and training images are seen unmixed (but for
    `MixupLoss` and `GradientNorm`) and not augmented.
    """

    views: ClassVar[Literal["single", "concat"] | None] = None
    """The views it is of; None: both."""

    every: int | None = None
    """Epochs from one measurement to the next; it divides `epochs`. None: `eval_every`."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the number of epochs is not positive.
        """
        require(self.every is None or self.every >= 1, "every >= 1", self, "every")
