"""fine_grained: saliency from pixels alone: the difference between a pixel and its surroundings."""

from __future__ import annotations

from mixup_core.arrays import Tensor, functional, torch

REACHES = (12, 24, 28, 48, 56, 112)
"""Half the side, in pixels, of each square of surroundings with which a pixel is compared."""


def fine_grained(images: Tensor) -> Tensor:
    """Return the saliency of each pixel, at most 1: (batch, height, width).

    The intensity of a pixel is the mean over channels, smoothed twice by [1 2 1] / 4 along rows and
    columns. It is compared with the mean intensity of the other pixels in each of six squares
    around the pixel, whose half sides are `REACHES`, clipped at the borders. Each pixel's positive
    differences are summed over the squares, and the sum is divided by the largest such sum in the
    image; the absolute values of its negative differences likewise. The two results are added, and
    divided by the largest value in the image.

    Source: Montabone and Soto 2010, Image and Vision Computing 28(3), with the squares of OpenCV,
    whose code also rounds every step to 8 bits; this function does not round.
    """
    gray = images.double().mean(1, keepdim=True)
    for _ in range(2):
        around = functional.pad(gray, (1, 1, 1, 1), mode="reflect")
        tall = around[:, :, :-2] + 2 * around[:, :, 1:-1] + around[:, :, 2:]
        gray = (tall[..., :-2] + 2 * tall[..., 1:-1] + tall[..., 2:]) / 16
    gray = gray.squeeze(1)
    sums = functional.pad(gray.cumsum(1).cumsum(2), (1, 0, 1, 0))
    above, below = torch.zeros_like(gray), torch.zeros_like(gray)
    for reach in REACHES:
        (top, bottom), (left, right) = (
            _ends(length, reach, gray.device) for length in gray.shape[1:]
        )
        bands = sums[:, bottom] - sums[:, top]
        others = (bottom - top)[:, None] * (right - left) - 1
        difference = gray - (bands[:, :, right] - bands[:, :, left] - gray) / others
        above += difference.clamp(min=0)
        below += (-difference).clamp(min=0)
    return _scaled(_scaled(above) + _scaled(below))


def _ends(length: int, reach: int, device: torch.device) -> tuple[Tensor, Tensor]:
    along = torch.arange(1, length + 1, device=device)
    return (along - reach).clamp(min=0), (along + reach).clamp(max=length)


def _scaled(values: Tensor) -> Tensor:
    greatest = values.amax(dim=(1, 2), keepdim=True)
    return values / torch.where(greatest > 0, greatest, 1)
