"""Boxes: axis-aligned rectangles of pixels in an image, clipped at its borders."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


def sides(share: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.int64]:
    """Return height and width, in pixels, of boxes whose sides are fractions of the image's sides.

    Results are rounded down.

    Args:
        share: Fraction of each box, (boxes,), in [0, 1].
        size: Height and width of the image.

    Returns:
        (boxes, 2).
    """
    lengths: NDArray[np.int64] = (share[:, None] * np.asarray(size)).astype(np.int64)
    return lengths


def draw_centres(count: int, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pixels uniformly from an image, as centres of boxes: (count, 2), row and column."""
    return rng.integers(np.asarray(size), size=(count, 2))


def boxes(
    centres: NDArray[Any], lengths: NDArray[np.int64], size: tuple[int, int]
) -> NDArray[np.int64]:
    """Return first row, end row, first column and end column of each box: (boxes, 4).

    A box extends by half of its side (rounded down) in both directions from its centre and is
    clipped at the borders. Ends are exclusive.

    Args:
        centres: Row and column, (boxes, 2).
        lengths: Height and width, (boxes, 2).
        size: Height and width of the image.
    """
    half = lengths // 2
    limit = np.asarray(size)
    first, end = np.clip(centres - half, 0, limit), np.clip(centres + half, 0, limit)
    return np.stack([first, end], axis=2).reshape(-1, 4)


def outside(drawn: "Tensor", own: "Tensor") -> "Tensor":
    """Return a mask that is 1 outside the boxes and 0 inside: (boxes, height, width).

    Args:
        drawn: Result of `boxes`, (boxes, 4).
        own: Images, (batch, channels, height, width). They set size, type and device of the mask.
    """
    import torch

    ranges = drawn.view(-1, 2, 2, 1)
    inside = []
    for axis, length in enumerate(own.shape[2:]):
        along = torch.arange(length, device=own.device)
        inside.append((along >= ranges[:, axis, 0]) & (along < ranges[:, axis, 1]))
    rows, columns = inside
    return (~(rows.unsqueeze(2) & columns.unsqueeze(1))).to(own.dtype)
