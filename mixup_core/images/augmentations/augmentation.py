"""Augmentation: base class of random changes made to a training image each time it is used."""

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
    """Base class of augmentations, which change training images batch by batch on their device.

    `draw` is called once per epoch and returns all random values, so that a resumed run has the
    same bits. If the second view of an image is another training image, it gets the same change.
    Probes and evaluation use images without augmentation. The file of an augmentation is imported
    whenever a study is read, so import torch inside the methods.
    """

    catalogue: ClassVar[Catalogue["Augmentation"]] = Catalogue("augmentation")

    tag: ClassVar[str]
    """Name of the augmentation in study files."""
    needs_bytes: ClassVar[bool] = False
    """True if the augmentation works on 8-bit pixels only, so that images must not be pooled before
    it.
    """

    chooses_on_host: ClassVar[bool] = False
    """True if the drawn values decide which functions are called. They then stay on the CPU,
    because reading them from a GPU would make each step wait for it.
    """

    @property
    def changes_images(self) -> bool:
        """True if this augmentation changes images, by overriding `on_pixels` or `on_images`."""
        own, none = type(self), Augmentation
        return (own.on_pixels, own.on_images) != (none.on_pixels, none.on_images)

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        """Draw the random values that an augmentation uses in one epoch; None if it uses none.

        The shape is `(*shape, values per image)`. Training calls this method at the start of each
        epoch.

        Args:
            shape: First axes of the result, (2, images): values are drawn for the images and for
                their partners.
            size: Height and width of the images.
            rng: Random generator that is used for nothing else.
        """
        del shape, size, rng
        return None

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the raw pixels of a batch after the augmentation.

        The result may have another number type, but its brightness must have the scale of `pixels`.
        Training calls this method for each batch, before the pixels are normalised.

        Args:
            pixels: (batch, channels, height, width), integer; 0 is black.
            drawn: Values that `draw` returned for these images, (batch, numbers), on the device of
                the pixels, or on the CPU if the class sets `chooses_on_host`.
        """
        del drawn
        return pixels

    def on_images(self, images: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the normalised images of a batch after the augmentation.

        Training calls this method for each batch, after `on_pixels` and normalisation.

        Args:
            images: (batch, channels, height, width), float32; may be modified. 0 is the mean pixel.
            drawn: Values that `draw` returned for these images, (batch, numbers); see `on_pixels`.
        """
        del drawn
        return images
