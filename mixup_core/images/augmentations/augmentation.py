"""Augmentation: base class of random changes made to a training image each time it is used."""

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

from mixup_core.arrays import NDArray, Tensor, np
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class Augmentation(Checked, ABC):
    """Base class of augmentations, which change training images batch by batch on their device.

    `draw` is called once per epoch and returns all its random values, so that a resumed run sees
    the same images. If the second view of an image (`data.views`, not the partner for mixing) is
    another training image, both get the same change. Probes and evaluation use no augmentation.
    The file of an augmentation is imported whenever a study is read, so import torch inside the
    methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Augmentation, NonNegative
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Brighter(Augmentation):
        ...     tag = "brighter"
        ...     most: NonNegative = 1.0
        ...     def draw(self, shape, size, rng):
        ...         return rng.uniform(0, self.most, (*shape, 1)).astype("float32")
        ...     def on_images(self, images, drawn):
        ...         return images + drawn[:, :, None, None]
        >>> import torch
        >>> Brighter().on_images(torch.zeros(1, 1, 1, 2), torch.tensor([[0.5]]))
        tensor([[[[0.5000, 0.5000]]]])
    """

    catalogue: ClassVar[Catalogue["Augmentation"]] = Catalogue("augmentation")

    tag: ClassVar[str]
    """Name of the augmentation in study files."""

    @property
    def changes_images(self) -> bool:
        """True if this augmentation changes images, by overriding `on_pixels` or `on_images`.

        Example:
            >>> from mixup_core.images.augmentations.crop import Crop
            >>> from mixup_core.images.augmentations.augmentation import Unchanged
            >>> Crop().changes_images, Unchanged().changes_images
            (True, False)
        """
        own, none = type(self), Augmentation
        return (own.on_pixels, own.on_images) != (none.on_pixels, none.on_images)

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        """Draw the random values that an augmentation uses in one epoch; None if it uses none.

        The result has the shape `(*shape, values per image)`. Training calls this method at the
        start of each epoch.

        Args:
            shape: First axes of the result, (2, images): values are drawn for the images and for
                their partners.
            size: Height and width of the images.
            rng: Random generator that is used for nothing else.

        Example:
            >>> from mixsweep.plugins import stream
            >>> from mixup_core.images.augmentations.crop import CropFlip
            >>> drawn = CropFlip().draw((2, 100), (32, 32), stream(0, "augmentation"))
            >>> drawn.shape  # for each image: first row, first column, mirrored or not
            (2, 100, 3)
        """
        return None

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the raw pixels of a batch after the augmentation.

        The result may have another number type, such as float32, but must use the same scale: 0 is
        black, and 255 white for 8-bit pixels. Training calls this method for each batch, before the
        pixels are normalised.

        Args:
            pixels: (batch, channels, height, width), integer; 0 is black.
            drawn: Values that `draw` returned for these images, (batch, numbers), on the device of
                the pixels.

        Example:
            >>> import torch
            >>> from mixup_core.images.augmentations.crop import CropFlip
            >>> pixels = torch.tensor([[[[10, 20]]]], dtype=torch.uint8)
            >>> CropFlip().on_pixels(pixels, torch.tensor([[4, 4, 1]]))  # not moved, but mirrored
            tensor([[[[20, 10]]]], dtype=torch.uint8)
        """
        return pixels

    def on_images(self, images: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the normalised images of a batch after the augmentation; by default unchanged.

        Training calls this method for each batch, after `on_pixels` and normalisation.

        Args:
            images: (batch, channels, height, width), float32; 0 is the mean pixel. The
                method may write into this tensor.
            drawn: Values that `draw` returned for these images, (batch, numbers); see `on_pixels`.

        Example:
            >>> import torch
            >>> from mixup_core.images.augmentations.crop import Crop  # changes pixels, not images
            >>> Crop().on_images(torch.ones(1, 1, 1, 2), torch.zeros(1, 3))
            tensor([[[[1., 1.]]]])
        """
        return images


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchanged(Augmentation):
    """No augmentation: uses each image as it is.

    Example:
        In a study file: `data.augment: none`.

        >>> from mixup_core.images.augmentations.augmentation import Unchanged
        >>> Unchanged().changes_images
        False
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "none"
