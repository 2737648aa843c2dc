"""Crop, CropFlip: random crops of a padded image, and mirror images."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.moves import Border, draw_moves, moved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Crop(Augmentation):
    """Pads the image by 4 pixels and crops it to its size at a uniform position."""

    tag: ClassVar = "crop"
    mirrors: ClassVar[bool] = False

    border: Border = "black"
    """Padding: black, or the image reflected without repeating its edge (as in OpenMixup)."""

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        """Draw the positions of crops, and which are mirrored: (*shape, 3)."""
        del size
        return draw_moves(shape, rng, mirrors=self.mirrors)

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the crops."""
        return moved(pixels, drawn, self.border)


@dataclass(frozen=True, kw_only=True, slots=True)
class CropFlip(Crop):
    """Crops as `Crop` does, and mirrors with probability 1/2."""

    tag: ClassVar = "crop-flip"
    mirrors: ClassVar[bool] = True
