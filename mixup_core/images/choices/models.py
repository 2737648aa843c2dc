"""Models: the networks that a run can train.

To add one, write its file, import it here and add it to the catalogue below.
"""

import itertools
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from mixup_core.addresses import local_path
from mixup_core.config.limits import Count, Matching, Range
from mixup_core.images.choices.model import Model
from mixup_core.images.data.digests import file_digest
from mixup_core.problem import DataError
from mixup_core.seeding import Seeds

if TYPE_CHECKING:
    from torch import nn


__all__ = [
    "EfficientNetV2S", "LinearModel", "Mlp", "Model", "NarrowResNet", "PreActResNet18", "ResNet18",
    "ResNet34", "Timm", "Vgg16",
]  # fmt: skip


class _Uniform(Model):
    """Base class of networks with PyTorch's default initial weights, drawn for the run's seed."""

    __slots__ = ()

    def initialised(
        self, in_channels: int, num_classes: int, image_size: int, seed: int | Seeds
    ) -> "nn.Module":
        """Return the network on the CPU with the initial weights of a seed."""
        from mixup_core.images.models import with_uniform_weights

        shape = in_channels, num_classes, image_size
        return with_uniform_weights(lambda: self.network(*shape), seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class _ByWidth(_Uniform):
    """Base class of convolutional networks that scale with the width of their first stage."""

    has_batch_norm: ClassVar = True
    stages: ClassVar[int] = 4

    width: Count | None = None
    """Channels of the first stage; None: the usual number of the model."""

    @property
    def depth(self) -> int:
        """Number of stages of the network, whose outputs the operation `manifold` can mix."""
        return self.stages

    @property
    def scale(self) -> float:
        """Width of the network: channels of its first stage divided by 64; 1 if `width` is None."""
        return (self.width or 64) / 64


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet18(_ByWidth):
    """ResNet-18 for small images: 3x3 first convolution, first stage of 64 or `width` channels.

    Example:
        In a study file: `model: {name: resnet18, width: 8}`.

        >>> from mixup_core.images.choices.models import ResNet18
        >>> network = ResNet18(width=8).network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        176402
    """

    name: ClassVar = "resnet18"

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a ResNet-18: 11,173,386 parameters for 2 channels (two grey views), 10 classes."""
        from mixup_core.images.models import ResNet, widening

        del image_size
        return ResNet(in_channels, num_classes, 1, widening(self.width or 64, (2, 2, 2, 2)))


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet34(_ByWidth):
    """ResNet-34 for small images: 3x3 first convolution, first stage of 64 or `width` channels.

    Example:
        In a study file: `model: {name: resnet34, width: 8}`.

        >>> from mixup_core.images.choices.models import ResNet34
        >>> network = ResNet34(width=8).network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        335154
    """

    name: ClassVar = "resnet34"

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a ResNet-34, which maps images to logits."""
        from mixup_core.images.models import ResNet, widening

        del image_size
        return ResNet(in_channels, num_classes, 1, widening(self.width or 64, (3, 4, 6, 3)))


@dataclass(frozen=True, kw_only=True, slots=True)
class PreActResNet18(_ByWidth):
    """ResNet-18 with normalisation before convolutions; first stage of 64 or `width` channels.

    Example:
        In a study file: `model: {name: preact-resnet18, width: 8}`.

        >>> from mixup_core.images.choices.models import PreActResNet18
        >>> network = PreActResNet18(width=8).network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        176178
    """

    name: ClassVar = "preact-resnet18"

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a PreActResNet-18; it has 11,172,170 parameters for 3 channels and 10 classes.

        The network of mixup-cifar10 (the mixup paper's code) also normalises after its first
        convolution, and does not after its last block: 11,171,274 parameters.
        """
        from mixup_core.images.models import PreActResNet, widening

        del image_size
        return PreActResNet(in_channels, num_classes, widening(self.width or 64, (2, 2, 2, 2)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Vgg16(_ByWidth):
    """VGG-16 for small images: BatchNorm, one linear layer, first stage of 64 or `width` channels.

    Example:
        In a study file: `model: {name: vgg16-bn, width: 8}`.

        >>> from mixup_core.images.choices.models import Vgg16
        >>> network = Vgg16(width=8).network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        232274
    """

    name: ClassVar = "vgg16-bn"
    stages: ClassVar[int] = 5

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a VGG-16, which maps images to logits."""
        from mixup_core.images.models import vgg16_bn

        del image_size
        return vgg16_bn(in_channels, num_classes, self.width or 64)


@dataclass(frozen=True, kw_only=True, slots=True)
class NarrowResNet(_ByWidth):
    """A small ResNet for runs of seconds on a CPU: stem of stride 2, three stages, 12 channels.

    Example:
        In a study file: `model: {name: narrow-resnet}`.

        >>> from mixup_core.images.choices.models import NarrowResNet
        >>> network = NarrowResNet().network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        44230
    """

    name: ClassVar = "narrow-resnet"
    stages: ClassVar[int] = 3

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a small ResNet, which maps images to logits."""
        from mixup_core.images.models import ResNet, widening

        del image_size
        return ResNet(in_channels, num_classes, 2, widening(self.width or 12, (1, 1, 1)))


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficientNetV2S(_Uniform):
    """EfficientNetV2-S of torchvision, without dropout and stochastic depth.

    Example:
        In a study file: `model: {name: efficientnet-v2-s}`.

        >>> from mixup_core.images.choices.models import EfficientNetV2S
        >>> EfficientNetV2S().has_batch_norm, EfficientNetV2S().depth
        (True, 6)
    """

    name: ClassVar = "efficientnet-v2-s"
    has_batch_norm: ClassVar = True

    @property
    def depth(self) -> int:
        """Number of stages of the network, whose outputs the operation `manifold` can mix."""
        return 6

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return an EfficientNetV2-S, which maps images to logits."""
        from mixup_core.images.models import efficientnet_v2_s

        del image_size
        return efficientnet_v2_s(in_channels, num_classes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mlp(_Uniform):
    """A fully connected ReLU network on the flattened pixels.

    Example:
        In a study file: `model: {name: mlp, hidden: [32]}`.

        >>> import torch
        >>> from mixup_core.images.choices.models import Mlp
        >>> Mlp(hidden=(32,)).network(1, 10, image_size=8)(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 10])
    """

    name: ClassVar = "mlp"
    has_batch_norm: ClassVar = False

    hidden: tuple[Annotated[int, Range(1, 2**20)], ...] | None = None
    """Sizes of the hidden layers; None: 300, 100."""

    @property
    def depth(self) -> int:
        """Number of hidden layers, whose outputs the operation `manifold` can mix."""
        return 2 if self.hidden is None else len(self.hidden)

    def num_wide_weights(self, inputs: int) -> int:
        """Return the number of weights up to the last hidden layer; 0 if `hidden` is None.

        Biases are not counted. The upper bound of a run's memory adds this number to the weights of
        the largest bundled network; these cover the default hidden layers.

        Args:
            inputs: Number of values of an image: channels times pixels.
        """
        sizes = (inputs, *(self.hidden or ()))
        return sum(before * after for before, after in itertools.pairwise(sizes))

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a fully connected network, which maps images to logits."""
        from mixup_core.images.models import mlp

        return mlp([in_channels * image_size**2, *(self.hidden or (300, 100)), num_classes])


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearModel(_Uniform):
    """Softmax regression on the flattened pixels.

    Example:
        In a study file: `model: {name: linear}`.

        >>> import torch
        >>> from mixup_core.images.choices.models import LinearModel
        >>> LinearModel().network(1, 10, image_size=8)(torch.zeros(5, 1, 8, 8)).shape
        torch.Size([5, 10])
    """

    name: ClassVar = "linear"
    has_batch_norm: ClassVar = False

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return a linear network, which maps images to logits."""
        from mixup_core.images.models import mlp

        return mlp([in_channels * image_size**2, num_classes])


@dataclass(frozen=True, kw_only=True, slots=True)
class Timm(Model):
    """A network of the package timm, by its name there (install the extra `mixsweep[timm]`).

    Example:
        In a study file: `model: {name: timm, architecture: resnet18}`.

        >>> from mixup_core.images.choices.models import Timm
        >>> Timm(architecture="resnet18").weights is None  # timm's initial weights
        True
    """

    name: ClassVar = "timm"
    has_batch_norm: ClassVar = True

    architecture: Annotated[str, Matching(r"[a-z0-9_]+", "be one of timm.list_models()")]
    """Name of an architecture that timm has, such as `resnet18`."""
    weights: str | None = None
    """File of pretrained weights: `.safetensors`, or a file that torch loads with `weights_only`.
    If the file has another number of classes, the last layer keeps its initial weights. Nothing is
    downloaded. None: timm's initial weights.
    """
    weights_digest: str | None = None
    """sha256 of the weights file, filled in when a study is read. It replaces `weights` in keys."""

    def prepared(self, folder: Path) -> "Timm":
        """Return these settings with absolute path and digest of the file of pretrained weights.

        Raises:
            DataError: If the file is missing.
        """
        if self.weights is None:
            return self
        file = (folder / local_path(self.weights)).absolute()
        if not file.is_file():
            raise DataError(
                f"{file}: not found; model.weights must name a file of weights",
                fields=("model.weights",),
            )
        return replace(self, weights=str(file), weights_digest=file_digest(file))

    def missing(self) -> str | None:
        """Return a message if timm is not installed, else None."""
        if find_spec("timm") is not None:
            return None
        return "model timm: the package timm is not installed; pip install 'mixsweep[timm]'"

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return the network of timm, with pretrained weights if `weights` names their file."""
        from mixup_core.images.timm_networks import load_weights, timm_network

        network = timm_network(self.architecture, in_channels, num_classes, image_size)
        if self.weights is not None:
            load_weights(network, Path(self.weights), self.weights_digest)
        return network


Model.catalogue.add(
    ResNet18, NarrowResNet, Mlp, LinearModel, ResNet34, PreActResNet18, Vgg16, EfficientNetV2S, Timm
)
