"""Model: base class of networks that study files can name; plugins may subclass it."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

from mixup_core.seeding import Seeds
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn


class Model(Checked, ABC):
    """Base class of networks, selected by name in study files.

    The file of a model is imported whenever a study is read, so import torch inside the methods.
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
        """
        return 0

    def prepared(self, folder: "Path") -> Self:
        """Return the model with absolute paths and digests of its files, such as weights.

        This method is called when a study is read. By default it returns the model unchanged.

        Args:
            folder: Folder of the study file, to which relative paths refer.

        Raises:
            DataError: If a file is missing.
        """
        del folder
        return self

    def missing(self) -> str | None:
        """Return a message if a package that the model needs is not installed; else None."""
        return None

    @property
    def scale(self) -> float:
        """Width of the network: 1 for its usual number of channels, 2 for twice as many.

        It enters an upper bound of a run's memory.
        """
        return 1.0

    def num_wide_weights(self, inputs: int) -> int:
        """Return the number of weights, if fields such as layer sizes can make it large; else 0.

        The number enters an upper bound of a run's memory.

        Args:
            inputs: Number of values of an image: channels times pixels.
        """
        del inputs
        return 0

    @abstractmethod
    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return the network; it maps (batch, channels, size, size) to logits, (batch, classes)."""

    def initialised(
        self, in_channels: int, num_classes: int, image_size: int, seed: int | Seeds
    ) -> "nn.Module":
        """Return the network on the CPU with the initial weights of a seed.

        By default, the network's constructor draws the weights from PyTorch's global generator,
        which is seeded before and restored afterwards.
        """
        from mixup_core.images.models import with_its_own_weights

        shape = in_channels, num_classes, image_size
        return with_its_own_weights(lambda: self.network(*shape), seed)
