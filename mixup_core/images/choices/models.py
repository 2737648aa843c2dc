"""Model: which network a run trains. Plain values; the networks are in `images/models.py`."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class _ByWidth:
    """A convolutional network whose stages widen with the first."""

    has_batch_norm: ClassVar = True

    width: int | None = None
    """Channels of the first stage; None: those of the source."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If the width is not positive.
        """
        require(self.width is None or self.width >= 1, "width >= 1", self, "width")


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet18(_ByWidth):
    """ResNet-18 with the CIFAR stem; 64 channels at first."""

    name: ClassVar = "resnet18"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet34(_ByWidth):
    """ResNet-34 with the CIFAR stem; 64 channels at first."""

    name: ClassVar = "resnet34"


@dataclass(frozen=True, kw_only=True, slots=True)
class PreActResNet18(_ByWidth):
    """ResNet-18 with the normalisation before the convolutions; 64 channels at first."""

    name: ClassVar = "preact-resnet18"


@dataclass(frozen=True, kw_only=True, slots=True)
class Vgg16(_ByWidth):
    """VGG-16 with BatchNorm and one linear layer, for small images; 64 channels at first."""

    name: ClassVar = "vgg16-bn"


@dataclass(frozen=True, kw_only=True, slots=True)
class NarrowResNet(_ByWidth):
    """Three single-block stages behind a stride-2 stem: seconds per run on a CPU; 12 channels."""

    name: ClassVar = "narrow-resnet"


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficientNetV2S:
    """EfficientNetV2-S as torchvision has it, without dropout and stochastic depth."""

    name: ClassVar = "efficientnet-v2-s"
    has_batch_norm: ClassVar = True


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Linear:
    """Softmax regression on the flattened pixels."""

    name: ClassVar = "linear"
    has_batch_norm: ClassVar = False


Model = ResNet18 | NarrowResNet | Mlp | Linear | ResNet34 | PreActResNet18 | Vgg16 | EfficientNetV2S
"""Initial weights depend on the seed alone. Functions: `mixup_core.images.models.MODELS`."""
