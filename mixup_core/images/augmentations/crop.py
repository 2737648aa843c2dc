"""Crop, CropFlip: random crops of a padded image, without or with mirroring."""

from dataclasses import dataclass
from typing import Any, ClassVar

from mixup_core.arrays import NDArray, Tensor, np
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.moves import Border, draw_moves, moved


@dataclass(frozen=True, kw_only=True, slots=True)
class Crop(Augmentation):
    """Pads the image by 4 pixels on each side and crops it to its size at a random position.

    Example:
        In a study file: `data.augment: crop`.

        >>> import torch
        >>> from mixup_core.images.augmentations.crop import Crop
        >>> pixels = torch.tensor([[[[10, 20, 30]]]], dtype=torch.uint8)
        >>> Crop().on_pixels(pixels, torch.tensor([[4, 5, 0]]))  # one column to the left
        tensor([[[[20, 30,  0]]]], dtype=torch.uint8)
    """

    tag: ClassVar = "crop"
    mirrors: ClassVar[bool] = False

    border: Border = "black"
    """Kind of padding: black, or the image reflected without repeating its edge (as in OpenMixup).
    """

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        del size
        return draw_moves(shape, rng, mirrors=self.mirrors)

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        return moved(pixels, drawn, self.border)


@dataclass(frozen=True, kw_only=True, slots=True)
class CropFlip(Crop):
    """Pads the image by 4 pixels per side, crops it at random, mirrors it with probability 1/2.

    Example:
        In a study file: `data.augment: {crop-flip: {border: reflect}}`.

        >>> import torch
        >>> from mixup_core.images.augmentations.crop import CropFlip
        >>> pixels = torch.tensor([[[[10, 20, 30]]]], dtype=torch.uint8)
        >>> CropFlip().on_pixels(pixels, torch.tensor([[4, 4, 1]]))  # mirrored only
        tensor([[[[30, 20, 10]]]], dtype=torch.uint8)
    """

    tag: ClassVar = "crop-flip"
    mirrors: ClassVar[bool] = True
