"""Crop, CropFlip: random crops of a padded image, without or with mirroring."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from mixup_core.arrays import Ints, NDArray, Tensor, functional, np, torch
from mixup_core.images.augmentations.augmentation import Augmentation

PADDING = 4
"""Number of padding pixels on each side."""

Border = Literal["black", "reflect"]


def draw_moves(shape: tuple[int, ...], rng: "np.random.Generator", *, mirrors: bool) -> Ints:
    """Draw a uniformly random crop position and mirroring of each image: (*shape, 3)."""
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    corner = rng.integers(2 * PADDING + 1, size=(*shape, 2))
    mirrored = rng.integers(2, size=(*shape, 1)) * mirrors
    return np.concatenate([corner, mirrored], axis=-1)


def moved(pixels: "Tensor", moves: "Tensor", border: Border) -> "Tensor":
    """Return images after padding, cropping and mirroring; same shape."""
    height, width = pixels.shape[2:]
    first_row, first_column, is_mirrored = moves.unbind(1)
    rows = first_row[:, None] + torch.arange(height, device=moves.device)
    along = torch.arange(width, device=moves.device)
    columns = torch.where(is_mirrored[:, None] == 1, along.flip(0), along)
    columns = first_column[:, None] + columns
    if border == "black":
        pixels = functional.pad(pixels, [PADDING] * 4)
    else:
        rows, columns = _reflected(rows - PADDING, height), _reflected(columns - PADDING, width)
    image = torch.arange(len(moves), device=moves.device)[:, None, None]
    # Indexing puts the channels last: (batch, height, width, channels).
    chosen = pixels[image, :, rows[:, :, None], columns[:, None, :]]
    return chosen.permute(0, 3, 1, 2).contiguous()


def _reflected(places: "Tensor", length: int) -> "Tensor":
    """Return indices with those beyond the border reflected into the image."""
    period = max(2 * (length - 1), 1)
    places = places % period
    return places.minimum(period - places) if length > 1 else places


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

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "crop"
    mirrors: ClassVar[bool] = False

    border: Border = "black"
    """Kind of padding: black, or the image reflected without repeating its edge (as in OpenMixup).
    """

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
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
