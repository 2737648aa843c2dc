"""Boxes: axis-aligned rectangles of pixels in an image, clipped at its borders."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

from __future__ import annotations

from typing import Any

from mixup_core.arrays import NDArray, Tensor, np, torch


def sides(share: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.int64]:
    """Return the height and width of boxes in pixels, rounded down."""
    lengths: NDArray[np.int64] = (share[:, None] * np.asarray(size)).astype(np.int64)
    return lengths


def draw_centres(count: int, size: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw random pixels of an image as centres of boxes: (count, 2), row and column of each."""
    return rng.integers(np.asarray(size), size=(count, 2))


def boxes(
    centres: NDArray[Any], lengths: NDArray[np.int64], size: tuple[int, int]
) -> NDArray[np.int64]:
    """Return first row, end row, first column and end column of each box: (boxes, 4).

    A box extends by half of its side (rounded down) in both directions from its centre and is
    clipped at the borders of the image. The end row and the end column are outside the box.
    """
    half = lengths // 2
    limit = np.asarray(size)
    first, end = np.clip(centres - half, 0, limit), np.clip(centres + half, 0, limit)
    return np.stack([first, end], axis=2).reshape(-1, 4)


def outside(drawn: Tensor, own: Tensor) -> Tensor:
    """Return a mask that is 1 outside the boxes and 0 inside: (boxes, height, width)."""
    ranges = drawn.view(-1, 2, 2, 1)
    inside = []
    for axis, length in enumerate(own.shape[2:]):
        along = torch.arange(length, device=own.device)
        inside.append((along >= ranges[:, axis, 0]) & (along < ranges[:, axis, 1]))
    rows, columns = inside
    return (~(rows.unsqueeze(2) & columns.unsqueeze(1))).to(own.dtype)
