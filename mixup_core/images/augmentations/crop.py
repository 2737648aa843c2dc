"""Crop, CropFlip: crops out of the surroundings of an image, and mirror images."""

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
    """A crop of the image's size out of the image with 4 pixels around it, at a uniform place."""

    tag: ClassVar = "crop"
    mirrors: ClassVar[bool] = False

    border: Border = "black"
    """The pixels around: black, or the image reflected (without its edge), as OpenMixup does."""

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        """Return where crops begin, and which are mirrored: (*shape, 3)."""
        del size
        return draw_moves(shape, rng, mirrors=self.mirrors)

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the crops."""
        return moved(pixels, drawn, self.border)


@dataclass(frozen=True, kw_only=True, slots=True)
class CropFlip(Crop):
    """A crop as `Crop` takes it, and a mirror image with probability 1/2."""

    tag: ClassVar = "crop-flip"
    mirrors: ClassVar[bool] = True
