"""Models: base class of networks, and the networks that a run can train; plugins may add more.

To add one, write its file, import it here and add it to the catalogue below.
"""

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Self

from mixup_core.addresses import local_path
from mixup_core.arrays import nn
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Matching, Range
from mixup_core.contracts import is_of_plugin
from mixup_core.images.data.digests import file_digest
from mixup_core.problem import DataError
from mixup_core.seeding import Seeds


class Model(Checked, ABC):
    """Base class of networks, selected by name in study files.

    The file of a model is imported whenever a study is read, so import torch inside the methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Count, Model
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Pooled(Model):
        ...     name = "pooled"
        ...     has_batch_norm = False
        ...     side: Count = 4
        ...     def network(self, in_channels, num_classes, image_size):
        ...         from torch import nn
        ...         linear = nn.Linear(in_channels * self.side**2, num_classes)
        ...         return nn.Sequential(nn.AdaptiveAvgPool2d(self.side), nn.Flatten(), linear)
        >>> import torch
        >>> Pooled().initialised(3, 10, 32, seed=0)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    __slots__ = ()

    catalogue: ClassVar[Catalogue["Model"]] = Catalogue("model")

    name: ClassVar[str]
    """Name of the model in study files."""
    has_batch_norm: ClassVar[bool]
    """True if the network uses batch normalisation, so that a batch needs at least two images."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that the network is made of, besides torch; each run records their versions."""

    @property
    def depth(self) -> int:
        """Number of hidden layers whose outputs the operation `manifold` can mix; 0 by default.

        A network with such layers lists them in its attribute `hidden_layers`, from first to last.

        Example:
            >>> from mixup_core.images.choices.models import LinearModel, Mlp
            >>> LinearModel().depth, Mlp(hidden=(64, 32)).depth
            (0, 2)
        """
        return 0

    def prepared(self, folder: Path) -> Self:
        """Return these settings with absolute path and digest of each file they name, if any.

        An example is a file of pretrained weights.

        This method is called when a study is read. By default it changes nothing.

        Args:
            folder: Folder of the study file, to which relative paths refer.

        Raises:
            DataError: If a file is missing.

        Example:
            >>> from pathlib import Path
            >>> from mixup_core.images.choices.models import Mlp
            >>> Mlp().prepared(Path())  # it has no files, so nothing changes
            Mlp(hidden=None)
        """
        return self

    def missing(self) -> str | None:
        """Return a message if a package that the model needs is not installed; else None.

        Example:
            >>> from mixup_core.images.choices.models import Mlp
            >>> Mlp().missing() is None
            True
        """
        return None

    @property
    def scale(self) -> float:
        """Width of the network: 1 for its usual number of channels, 2 for twice as many.

        It enters an upper bound of a run's memory.

        Example:
            >>> from mixup_core.images.choices.models import Mlp, ResNet18
            >>> Mlp().scale, ResNet18(width=128).scale  # 64 channels are usual
            (1.0, 2.0)
        """
        return 1.0

    def num_wide_weights(self, inputs: int) -> int:
        """Return the number of weights in layers whose sizes the user sets one by one; 0 if none.

        The upper bound of a run's memory already covers the weights of the largest bundled network,
        and adds this number to them. `Mlp`, for example, counts the weights up to its last hidden
        layer, without biases.

        Args:
            inputs: Number of values of an image: channels times pixels.

        Example:
            >>> from mixup_core.images.choices.models import LinearModel, Mlp
            >>> LinearModel().num_wide_weights(64), Mlp(hidden=(100, 10)).num_wide_weights(64)
            (0, 7400)
        """
        return 0

    @abstractmethod
    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return the network; it maps (batch, channels, size, size) to logits, (batch, classes).

        Args:
            in_channels: Channels of the images.
            num_classes: Number of classes, the length of a row of logits.
            image_size: Height and width of the images, in pixels.

        Example:
            >>> import torch
            >>> from mixup_core.images.choices.models import NarrowResNet
            >>> network = NarrowResNet().network(1, 10, 28)
            >>> network(torch.zeros(2, 1, 28, 28)).shape
            torch.Size([2, 10])
        """

    def initialised(
        self, in_channels: int, num_classes: int, image_size: int, seed: int | Seeds
    ) -> "nn.Module":
        """Return the network on the CPU with the initial weights of a seed.

        By default, the network's constructor draws the weights from PyTorch's global generator,
        which is seeded before and restored afterwards.

        Args:
            in_channels: Channels of the images.
            num_classes: Number of classes, the length of a row of logits.
            image_size: Height and width of the images, in pixels.
            seed: Seed of the run; or a `Seeds`, which gives one source of randomness, such as the
                order of the images, a seed of its own.

        Example:
            >>> import torch
            >>> from mixup_core.images.choices.models import LinearModel
            >>> first, again = (LinearModel().initialised(1, 10, 8, seed=3) for _ in range(2))
            >>> torch.equal(first[1].weight, again[1].weight)
            True
        """
        from mixup_core.images.networks import with_its_own_weights

        shape = in_channels, num_classes, image_size
        return with_its_own_weights(lambda: self.network(*shape), seed)


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
    num_blocks: ClassVar[tuple[int, ...]]
    """Number of blocks, or of convolutions, in each stage."""
    usual_width: ClassVar[int] = 64

    width: Count | None = None
    """Channels of the first stage; None: the usual number of the model."""

    @property
    def depth(self) -> int:
        return len(self.num_blocks)

    @property
    def scale(self) -> float:
        return (self.width or 64) / 64


@dataclass(frozen=True, kw_only=True, slots=True)
class _ResNet(_ByWidth):
    stem_stride: ClassVar[int] = 1

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        from mixup_core.images.networks import ResNet

        width = self.width or self.usual_width
        return ResNet(in_channels, num_classes, width, self.num_blocks, self.stem_stride)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet18(_ResNet):
    """ResNet-18 for small images: 3x3 first convolution, first stage of 64 or `width` channels.

    Example:
        In a study file: `model: {name: resnet18, width: 8}`.

        >>> from mixup_core.images.choices.models import ResNet18
        >>> network = ResNet18(width=8).network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        176402
    """

    # Frozen: each `name`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    name: ClassVar = "resnet18"
    num_blocks: ClassVar = (2, 2, 2, 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResNet34(_ResNet):
    """ResNet-34 for small images: 3x3 first convolution, first stage of 64 or `width` channels.

    Example:
        In a study file: `model: {name: resnet34, width: 8}`.

        >>> from mixup_core.images.choices.models import ResNet34
        >>> network = ResNet34(width=8).network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        335154
    """

    name: ClassVar = "resnet34"
    num_blocks: ClassVar = (3, 4, 6, 3)


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
    num_blocks: ClassVar = (2, 2, 3, 3, 3)

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        from mixup_core.images.networks import vgg16_bn

        return vgg16_bn(in_channels, num_classes, self.width or self.usual_width, self.num_blocks)


@dataclass(frozen=True, kw_only=True, slots=True)
class NarrowResNet(_ResNet):
    """A small ResNet for runs of seconds on a CPU: stem of stride 2, three stages, 12 channels.

    Example:
        In a study file: `model: {name: narrow-resnet}`.

        >>> from mixup_core.images.choices.models import NarrowResNet
        >>> network = NarrowResNet().network(in_channels=3, num_classes=10, image_size=32)
        >>> sum(parameter.numel() for parameter in network.parameters())
        44230
    """

    name: ClassVar = "narrow-resnet"
    num_blocks: ClassVar = (1, 1, 1)
    usual_width: ClassVar = 12
    stem_stride: ClassVar = 2


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
    """Sizes of the hidden layers; None: 300, 100. With an empty list there are none."""

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (300, 100) if self.hidden is None else self.hidden

    @property
    def depth(self) -> int:
        return len(self._sizes)

    def num_wide_weights(self, inputs: int) -> int:
        sizes = (inputs, *(self.hidden or ()))
        return sum(before * after for before, after in itertools.pairwise(sizes))

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        from mixup_core.images.networks import mlp

        return mlp([in_channels * image_size**2, *self._sizes, num_classes])


def corrections_of_model(model: Model) -> int:
    """Return 1 for an `Mlp` without hidden layers, which had the default ones before; else 0."""
    return int(isinstance(model, Mlp) and model.hidden == ())


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
    packages: ClassVar = ("timm",)

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
        from mixup_core.images.networks import unknown

        return unknown(self.architecture)

    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        from mixup_core.images.networks import load_weights, timm_network

        if message := self.missing():
            raise DataError(message)
        network = timm_network(self.architecture, in_channels, num_classes, image_size)
        if self.weights is not None:
            load_weights(network, Path(self.weights), self.weights_digest)
        return network


def in_full(model: Model) -> Model:
    """Return the settings of the same network with its sizes in place of None."""
    if is_of_plugin(model):
        return model
    if isinstance(model, _ByWidth):
        return replace(model, width=model.width or model.usual_width)
    if isinstance(model, Mlp):
        return replace(model, hidden=model._sizes) if model._sizes else LinearModel()
    return model


Model.catalogue.add(ResNet18, NarrowResNet, Mlp, LinearModel, ResNet34, Vgg16, Timm)
