"""Model: base class of networks that study files can name; plugins may subclass it."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

from mixup_core.arrays import nn
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.seeding import Seeds

if TYPE_CHECKING:
    from pathlib import Path


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

    def prepared(self, folder: "Path") -> Self:
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
        del folder
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
        del inputs
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
