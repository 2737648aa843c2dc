"""Model: which network a run trains; an open choice, whose members `models` names."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from mixup_core.seeding import Seeds
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    from torch import nn


class Model(Checked, ABC):
    """A network by its name; the file is read when a study is, so it imports torch in methods."""

    __slots__ = ()

    catalogue: ClassVar[Catalogue["Model"]] = Catalogue("model")

    name: ClassVar[str]
    """Name of the model in study files."""
    has_batch_norm: ClassVar[bool]
    """True if it normalises by batch, so that no batch may be a single image."""

    @property
    def depth(self) -> int:
        """Hidden layers whose outputs the operation `manifold` can mix; by default there are none.

        The network has them in an attribute `hidden_layers`, a list of modules, first to last.
        """
        return 0

    @abstractmethod
    def network(self, in_channels: int, num_classes: int, image_size: int) -> "nn.Module":
        """Return the network, from images (batch, channels, size, size) to logits."""

    def initialised(
        self, in_channels: int, num_classes: int, image_size: int, seed: int | Seeds
    ) -> "nn.Module":
        """Return the network on the CPU with the initial weights of a seed.

        By default these are the ones that its own constructor draws, as if the program had just
        been seeded; the global generator is left as it was.
        """
        from mixup_core.images.models import with_its_own_weights

        return with_its_own_weights(self, in_channels, num_classes, image_size, seed)
