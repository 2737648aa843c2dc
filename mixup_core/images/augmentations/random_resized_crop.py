"""RandomResizedCrop: resizes a window of random area and aspect ratio to the size of the image."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Ints, NDArray, Tensor, functional, np, torch
from mixup_core.config.limits import Range
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.rules import require_order

_ATTEMPTS = 10


def draw_windows(
    shape: tuple[int, ...],
    size: tuple[int, int],
    area: tuple[float, float],
    ratio: tuple[float, float],
    rng: "np.random.Generator",
) -> "tuple[Ints, NDArray[np.bool_]]":
    """Draw a random window of each image: a rectangle, for example the part to erase.

    Area, logarithm of the aspect ratio and position are uniform; sides are rounded. Ten
    rectangles are drawn for each image, and the first that fits into it is used, as in torchvision;
    if none fits, the window is the whole image.
    """
    tries = (*shape, _ATTEMPTS)
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    pixels = rng.uniform(*area, tries) * size[0] * size[1]
    aspect = np.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1]), tries))
    place = rng.random((*shape, 2))
    lengths = np.stack([np.rint(np.sqrt(pixels / aspect)), np.rint(np.sqrt(pixels * aspect))], -1)
    fits = ((lengths >= 1) & (lengths <= size)).all(axis=-1)
    first = fits.argmax(-1)[..., None, None]
    found: NDArray[Any] = np.asarray(fits.any(axis=-1))
    chosen = np.take_along_axis(lengths, first, axis=-2)[..., 0, :]
    chosen = np.where(found[..., None], chosen, size)
    begin = np.floor(place * (np.asarray(size) - chosen + 1))
    windows = np.stack([begin, begin + chosen], axis=-1).reshape(*shape, 4)
    return windows.astype(np.int64), found


CropArea = Annotated[float, Range(0, 1, "(]")]


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomResizedCrop(Augmentation):
    """Resizes a random window to the image's size (bilinear); with `flip`, mirrors it at random.

    Source: Szegedy et al. 2015, arXiv:1409.4842, section 6; default areas and aspect ratios
    as in torchvision.

    Example:
        In a study file: `data.augment: random-resized-crop`.

        >>> import torch
        >>> from mixup_core.images.augmentations.random_resized_crop import RandomResizedCrop
        >>> pixels = torch.tensor([[[[10, 20, 30, 40]]]], dtype=torch.uint8)
        >>> window = torch.tensor([[0, 1, 2, 4, 0]])  # row 0, columns 2 and 3; not mirrored
        >>> RandomResizedCrop().on_pixels(pixels, window)
        tensor([[[[30.0000, 32.5000, 37.5000, 40.0000]]]])
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "random-resized-crop"

    least_area: CropArea = 0.08
    """Smallest area of the crop, as a share of the image."""
    greatest_area: CropArea = 1.0
    """Largest area of the crop, as a share of the image."""
    ratio: Annotated[float, Range(1, 100)] = 4 / 3
    """Largest ratio of width to height; the smallest is 1 / ratio."""
    flip: bool = True
    """True: mirror with probability 1/2."""

    def check(self) -> None:
        require_order(self, "least_area", "greatest_area")

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        area = self.least_area, self.greatest_area
        windows, _ = draw_windows(shape, size, area, (1 / self.ratio, self.ratio), rng)
        mirrored = rng.integers(2, size=(*shape, 1)) * self.flip
        return np.concatenate([windows, mirrored], axis=-1)

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        places = []
        for length, first, end in zip(
            pixels.shape[2:], drawn[:, 0:4:2].unbind(1), drawn[:, 1:4:2].unbind(1), strict=True
        ):
            along = (torch.arange(length, device=drawn.device) + 0.5) / length
            place = first[:, None] + along * (end - first)[:, None] - 0.5
            within = place.maximum(first[:, None]).minimum(end[:, None] - 1)
            places.append(2 * (within + 0.5) / length - 1)
        rows, columns = places
        columns = torch.where(drawn[:, 4:] == 1, columns.flip(1), columns)
        shape = len(pixels), *pixels.shape[2:]
        grid = torch.stack([columns[:, None].expand(shape), rows[:, :, None].expand(shape)], dim=3)
        return functional.grid_sample(
            pixels.float(), grid, align_corners=False, padding_mode="border"
        )
