"""Augmentation: what is done to a training image at each access; an open choice."""

from abc import ABC
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Augmentation(Checked, ABC):
    """Changes training images batch by batch, on the device where they are.

    `draw` is called once per epoch and returns all that is random, so that a resumed run has the
    same bits. Both views of an image are changed alike. Probes and evaluation see no augmentation.
    The file of an augmentation is read when a study is: it imports torch where it computes.
    """

    catalogue: ClassVar[Catalogue["Augmentation"]] = Catalogue("augmentation")

    tag: ClassVar[str]
    """Name of the augmentation in study files."""
    needs_bytes: ClassVar[bool] = False
    """True if it is defined for pixels of 8 bits alone, so that images cannot be pooled before."""

    chooses_on_host: ClassVar[bool] = False
    """True if its draws decide which functions are called, so that it takes them on the CPU:
    reading them from a GPU would wait for it in each step."""

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        """Return the draws of each access, (shape..., numbers); None: nothing is done.

        Args:
            shape: Of the accesses.
            size: Height and width of the images.
            rng: Source of the draws; a stream that nothing else reads.
        """
        del shape, size, rng
        return None

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return raw pixels, changed; in any type, in the same unit.

        Args:
            pixels: (batch, channels, height, width), of an integer type, 0 is black.
            drawn: (batch, numbers), from `draw`, on the device of the pixels, or on the CPU if the
                augmentation `chooses_on_host`.
        """
        del drawn
        return pixels

    def on_images(self, images: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return normalised images, changed.

        Args:
            images: (batch, channels, height, width), float32; may be changed. 0 is the mean pixel.
            drawn: As for `on_pixels`.
        """
        del drawn
        return images
