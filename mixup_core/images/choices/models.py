"""Models: the networks that a run can train.

To add one, write its file, import it here and add it to the catalogue below.
"""

import itertools
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar

from mixup_core.addresses import local_path
from mixup_core.arrays import nn
from mixup_core.config.limits import Count, Matching, Range
from mixup_core.images.choices.model import Model
from mixup_core.images.data.digests import file_digest
from mixup_core.problem import DataError
from mixup_core.seeding import Seeds

__all__ = [
    "LinearModel", "Mlp", "Model", "NarrowResNet", "ResNet18", "ResNet34", "Timm", "Vgg16",
]  # fmt: skip


class _Uniform(Model):
    """Base class of networks with PyTorch's default initial weights, drawn for the run's seed."""

    __slots__ = ()

    def initialised(
        self, in_channels: int, num_classes: int, image_size: int, seed: int | Seeds
    ) -> "nn.Module":
        from mixup_core.images.networks import with_uniform_weights

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
        return self.stages

    @property
    def scale(self) -> float:
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
        from mixup_core.images.networks import ResNet, widening

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
        from mixup_core.images.networks import ResNet, widening

        del image_size
        return ResNet(in_channels, num_classes, 1, widening(self.width or 64, (3, 4, 6, 3)))


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
        from mixup_core.images.networks import vgg16_bn

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
        from mixup_core.images.networks import ResNet, widening

        del image_size
        return ResNet(in_channels, num_classes, 2, widening(self.width or 12, (1, 1, 1)))


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
        return 2 if self.hidden is None else len(self.hidden)

    def num_wide_weights(self, inputs: int) -> int:
        sizes = (inputs, *(self.hidden or ()))
        return sum(before * after for before, after in itertools.pairwise(sizes))

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        from mixup_core.images.networks import mlp

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
        from mixup_core.images.networks import mlp

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
        if find_spec("timm") is None:
            return "model timm: the package timm is not installed; pip install 'mixsweep[timm]'"
        from mixup_core.images.timm_networks import unknown

        return unknown(self.architecture)

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        from mixup_core.images.timm_networks import load_weights, timm_network

        network = timm_network(self.architecture, in_channels, num_classes, image_size)
        if self.weights is not None:
            load_weights(network, Path(self.weights), self.weights_digest)
        return network


Model.catalogue.add(ResNet18, NarrowResNet, Mlp, LinearModel, ResNet34, Vgg16, Timm)
