"""RandAugment: random image transformations, all of the same magnitude."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mixup_core.config.limits import Range
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.moves import Border, draw_moves, moved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

TRANSFORMATIONS = (
    "identity",
    "shear-x",
    "shear-y",
    "translate-x",
    "translate-y",
    "rotate",
    "brightness",
    "colour",
    "contrast",
    "sharpness",
    "posterise",
    "solarise",
    "autocontrast",
    "equalise",
)
GREATEST = 30
"""Maximum magnitude."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RandAugment(Augmentation):
    """Applies random transformations, such as rotations, to each image.

    The augmentation that the field `before` names comes first: none, crop, or crop and mirror.
    Transformations are drawn with replacement. They and their magnitudes are torchvision's;
    directions, such as left or right, are random. Images of a batch with the same transformation
    are transformed together.

    Source: Cubuk et al. 2020, arXiv:1909.13719, section 3.

    Example:
        In a study file: `data.augment: {randaugment: {magnitude: 5}}`.

        >>> import torch
        >>> from mixup_core.images.augmentations.rand_augment import RandAugment
        >>> pixels = torch.tensor([[[[10, 200]]]], dtype=torch.uint8).expand(1, 3, 1, 2)
        >>> drawn = torch.tensor([[4, 4, 1, 0, 0, 1, 1]])  # mirrored; twice the identity
        >>> RandAugment().on_pixels(pixels, drawn)[0, 0]
        tensor([[200,  10]], dtype=torch.uint8)
    """

    tag: ClassVar = "randaugment"
    needs_bytes: ClassVar = True
    chooses_on_host: ClassVar = True

    number: Annotated[int, Range(1, 14)] = 2
    """Number of transformations applied to each image, one after another."""
    magnitude: Annotated[int, Range(0, GREATEST)] = 9
    """Magnitude of every transformation, from 0 to 30, the maximum."""
    before: Literal["none", "crop", "crop-flip"] = "crop-flip"
    """Augmentation applied before the transformations."""
    border: Border = "black"
    """Kind of padding of the crop."""

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        """Draw crop, mirroring, transformations and signs of each image: (*shape, 3 + 2 number).

        The values of an image are first row and first column of its crop, 1 to mirror it or 0, the
        indices of its transformations in `TRANSFORMATIONS`, as many as the field `number` says, and
        the sign of each: 1 or -1, its direction.
        """
        import numpy as np

        del size
        moves = draw_moves(shape, rng, mirrors=self.before == "crop-flip")
        chosen = rng.integers(len(TRANSFORMATIONS), size=(*shape, self.number))
        signs = 2 * rng.integers(2, size=(*shape, self.number)) - 1
        return np.concatenate([moves, chosen, signs], axis=-1)

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        """Return the images after the augmentation `before` and the drawn transformations.

        `drawn` is on the CPU, because each training step would have to wait for a GPU to read there
        which transformations to apply. In some transformations, such as rotations, torchvision
        itself copies a few numbers to the GPU and waits for the copy.
        """
        import torch

        if self.before != "none":
            moves = drawn[:, :3].to(pixels.device, non_blocking=True)
            pixels = moved(pixels, moves, self.border)
        for step in range(3, 3 + self.number):
            signed = drawn[:, step] * drawn[:, step + self.number]
            transformed = pixels.clone()
            for index, name in enumerate(TRANSFORMATIONS[1:], 1):
                for sign in (1, -1):
                    some = torch.nonzero(signed == sign * index).flatten()
                    if len(some):
                        some = some.to(pixels.device, non_blocking=True)
                        change = transformations(self.magnitude, sign, tuple(pixels.shape[2:]))
                        transformed[some] = change[name](pixels[some])
            pixels = transformed
        return pixels


def transformations(
    magnitude: int, sign: int, size: tuple[int, ...]
) -> "Mapping[str, Callable[[Tensor], Tensor]]":
    """Return the transformations of RandAugment by name, without `identity`, which changes nothing.

    Each is a function from images to images, (batch, channels, height, width), uint8.

    Args:
        magnitude: Strength of the transformations, from 0 (weakest) to `GREATEST`.
        sign: 1 or -1: direction of a transformation, such as a rotation to the left or right.
        size: Height and width of the images.
    """
    import math

    import torch
    from torchvision.transforms.v2 import functional as f

    def of(greatest: float) -> float:
        return float(torch.linspace(0, greatest, GREATEST + 1)[magnitude])  # as torchvision

    shear = math.degrees(math.atan(sign * of(0.3)))
    shift = [int(sign * of(150 / 331 * length)) for length in size]
    factor = 1 + sign * of(0.9)
    threshold = 255 * float(torch.linspace(1, 0, GREATEST + 1)[magnitude])
    still: dict[str, Any] = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
    corner: dict[str, Any] = {"center": [0, 0]}
    return {
        "shear-x": lambda x: f.affine(x, **still | corner | {"shear": [shear, 0.0]}),
        "shear-y": lambda x: f.affine(x, **still | corner | {"shear": [0.0, shear]}),
        "translate-x": lambda x: f.affine(x, **still | {"translate": [shift[1], 0]}),
        "translate-y": lambda x: f.affine(x, **still | {"translate": [0, shift[0]]}),
        "rotate": lambda x: f.rotate(x, sign * of(30)),
        "brightness": lambda x: f.adjust_brightness(x, factor),
        "colour": lambda x: f.adjust_saturation(x, factor),
        "contrast": lambda x: f.adjust_contrast(x, factor),
        "sharpness": lambda x: f.adjust_sharpness(x, factor),
        "posterise": lambda x: f.posterize(x, round(8 - magnitude / (GREATEST / 4))),
        "solarise": lambda x: f.solarize(x, threshold),
        "autocontrast": f.autocontrast,
        "equalise": f.equalize,
    }
