"""Model: which network a run trains. Plain values; the networks are in `images/models.py`."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet18:
    """ResNet-18 with the CIFAR stem."""

    name: ClassVar = "resnet18"
    has_batch_norm: ClassVar = True

    width: int | None = None
    """Channels of the first stage; None: 64."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the width is not positive.
        """
        require(self.width is None or self.width >= 1, "width >= 1", self, "width")


@dataclass(frozen=True, kw_only=True, slots=True)
class NarrowResNet:
    """Three single-block stages behind a stride-2 stem: seconds per run on a CPU."""

    name: ClassVar = "narrow-resnet"
    has_batch_norm: ClassVar = True

    width: int | None = None
    """Channels of the first stage; None: 12."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the width is not positive.
        """
        require(self.width is None or self.width >= 1, "width >= 1", self, "width")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mlp:
    """A ReLU network over the flattened pixels."""

    name: ClassVar = "mlp"
    has_batch_norm: ClassVar = False

    hidden: tuple[int, ...] | None = None
    """Hidden layer sizes; None: 300, 100."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If a size is not positive.
        """
        fits = self.hidden is None or all(size >= 1 for size in self.hidden)
        require(fits, "each hidden size >= 1", self, "hidden")


Model = ResNet18 | NarrowResNet | Mlp
"""The network; its initial weights depend on the seed alone. Functions: `models.MODELS`."""
