"""Erasing: replaces a random window of the image by the mean pixel."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from mixup_core.arrays import NDArray, Tensor, np
from mixup_core.config.limits import Range, Share
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.crop import Border, draw_moves, moved
from mixup_core.images.augmentations.random_resized_crop import draw_windows
from mixup_core.mixing.masks import outside
from mixup_core.rules import require_order

ErasedArea = Annotated[float, Range(0, 1, "()")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Erasing(Augmentation):
    """Random erasing: replaces a window of some images by the mean pixel.

    The augmentation that the field `before` names comes first: none, crop, or crop and mirror.

    Source: Zhong et al. 2020, arXiv:1708.04896; default areas and largest aspect ratio as in
    torchvision.

    Example:
        In a study file: `data.augment: {erasing: {probability: 0.25}}`.

        >>> import torch
        >>> from mixup_core.images.augmentations.erasing import Erasing
        >>> drawn = torch.tensor([[4, 4, 0, 0, 1, 1, 3]])  # erases columns 1 and 2 of row 0
        >>> Erasing().on_images(torch.ones(1, 1, 1, 4), drawn)
        tensor([[[[1., 0., 0., 1.]]]])
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "erasing"

    probability: Share = 0.5
    """Probability that an image gets an erased window."""
    least_area: ErasedArea = 0.02
    """Smallest erased area, as a share of the image."""
    greatest_area: ErasedArea = 0.33
    """Largest erased area, as a share of the image."""
    ratio: Annotated[float, Range(1, 100)] = 3.3
    """Largest ratio of width to height; the smallest is 1 / ratio."""
    before: Literal["none", "crop", "crop-flip"] = "crop-flip"
    """Augmentation applied before the erasing."""
    border: Border = "black"
    """Kind of padding of the crop."""

    def check(self) -> None:
        require_order(self, "least_area", "greatest_area")

    def draw(
        self, shape: tuple[int, ...], size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any] | None":
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        moves = draw_moves(shape, rng, mirrors=self.before == "crop-flip")
        area = self.least_area, self.greatest_area
        windows, found = draw_windows(shape, size, area, (1 / self.ratio, self.ratio), rng)
        is_erased = found & (rng.random(shape) < self.probability)
        return np.concatenate([moves, windows * is_erased[..., None]], axis=-1)

    def on_pixels(self, pixels: "Tensor", drawn: "Tensor") -> "Tensor":
        return pixels if self.before == "none" else moved(pixels, drawn[:, :3], self.border)

    def on_images(self, images: "Tensor", drawn: "Tensor") -> "Tensor":
        return images.mul_(outside(drawn[:, 3:], images).unsqueeze(1))
