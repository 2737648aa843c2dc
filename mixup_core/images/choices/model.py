"""Model: base class of networks. `models` registers them; plugins may add more."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

from mixup_core.seeding import Seeds
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn


class Model(Checked, ABC):
    """A network, selected by name. Import torch in methods: studies import the file."""

    __slots__ = ()

    catalogue: ClassVar[Catalogue["Model"]] = Catalogue("model")

    name: ClassVar[str]
    """The model's name in study files."""
    has_batch_norm: ClassVar[bool]
    """True if it uses batch normalisation, so that a batch needs at least two images."""

    @property
    def depth(self) -> int:
        """Number of hidden layers whose outputs `manifold` can mix; by default there are none.

        The network holds them in the attribute `hidden_layers`, a list of modules from first to
        last.
        """
        return 0

    def prepared(self, folder: "Path") -> Self:
        """Return the model with paths and digests of its files; by default it has none.

        Args:
            folder: Folder of the study file, which relative paths start from.

        Raises:
            DataError: If a file is missing.
        """
        del folder
        return self

    def missing(self) -> str | None:
        """Return a message on a package that is not installed; None if none is missing."""
        return None

    @property
    def scale(self) -> float:
        """Channels of the network as a multiple of its usual ones, for a bound of its memory."""
        return 1.0

    def num_wide_weights(self, inputs: int) -> int:
        """Return the number of weights if widths in a study file can make it large, else 0."""
        del inputs
        return 0

    @abstractmethod
    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return the network: images (batch, channels, size, size) to logits (batch, classes)."""

    def initialised(
        self, in_channels: int, num_classes: int, image_size: int, seed: int | Seeds
    ) -> "nn.Module":
        """Return the network on the CPU with the initial weights of a seed.

        By default its own constructor draws them from PyTorch's generator, seeded for this purpose
        and restored afterwards.
        """
        from mixup_core.images.models import with_its_own_weights

        shape = in_channels, num_classes, image_size
        return with_its_own_weights(lambda: self.network(*shape), seed)
