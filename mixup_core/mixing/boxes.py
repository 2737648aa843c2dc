"""Boxes: rectangles with the shape of the image, clipped at its borders."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


def sides(share: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.int64]:
    """Return height and width of boxes whose sides are a share of the image's, rounded down.

    Args:
        share: (boxes,), in [0, 1].
        size: Height and width of the image.

    Returns:
        (boxes, 2).
    """
    lengths: NDArray[np.int64] = (share[:, None] * np.asarray(size)).astype(np.int64)
    return lengths


def draw_centres(count: int, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return pixels drawn uniformly over the image: (count, 2), row and column."""
    return rng.integers(np.asarray(size), size=(count, 2))


def boxes(
    centres: NDArray[Any], lengths: NDArray[np.int64], size: tuple[int, int]
) -> NDArray[np.int64]:
    """Return first row, end row, first column and end column of boxes: (boxes, 4).

    A box reaches half of its length, rounded down, to both sides of its centre, as far as the image
    goes; the ends are excluded.

    Args:
        centres: (boxes, 2).
        lengths: (boxes, 2).
        size: Height and width of the image.
    """
    half = lengths // 2
    limit = np.asarray(size)
    first, end = np.clip(centres - half, 0, limit), np.clip(centres + half, 0, limit)
    return np.stack([first, end], axis=2).reshape(-1, 4)


def outside(drawn: "Tensor", own: "Tensor") -> "Tensor":
    """Return 1 outside of boxes and 0 inside: (boxes, height, width), as `own`.

    Args:
        drawn: Boxes, (boxes, 4).
        own: (batch, channels, height, width).
    """
    import torch

    ranges = drawn.view(-1, 2, 2, 1)
    inside = []
    for axis, length in enumerate(own.shape[2:]):
        along = torch.arange(length, device=own.device)
        inside.append((along >= ranges[:, axis, 0]) & (along < ranges[:, axis, 1]))
    rows, columns = inside
    return (~(rows.unsqueeze(2) & columns.unsqueeze(1))).to(own.dtype)
