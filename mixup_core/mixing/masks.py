"""Masks and boxes of mixing operations: how they are drawn, and how a mask combines two images."""

from __future__ import annotations

from typing import Any

from mixup_core.arrays import Floats, Ints, NDArray, Tensor, np, torch


def masked(own: Tensor, beside: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return mixed images, `mask * own + (1 - mask) * beside`, and their label weights.

    The label weight of an image is the mean of its mask.
    """
    return torch.lerp(beside, own, mask.unsqueeze(1)), mask.mean(dim=(1, 2))


def draw_kept(lam: Floats, parts: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw which parts each image keeps when it is mixed: each with probability lam, independently.

    Args:
        lam: Mixing weights, one per image, of any shape, in [0, 1].
        parts: Number of parts of each image: cells of a grid, or patches of a data point in the
            problem rare-features.
        rng: Random generator.

    Returns:
        True for each part that is kept: (shape of `lam`, parts).
    """
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    return rng.random((*lam.shape, parts)) < lam[..., None]


def sides(share: Floats, size: tuple[int, int]) -> Ints:
    """Return the height and width of boxes in pixels, rounded down."""
    lengths: Ints = (share[:, None] * np.asarray(size)).astype(np.int64)
    return lengths


def draw_centres(count: int, size: tuple[int, int], rng: np.random.Generator) -> Ints:
    """Draw random pixels of an image as centres of boxes: (count, 2), row and column of each."""
    return rng.integers(np.asarray(size), size=(count, 2))


def boxes(centres: NDArray[Any], lengths: Ints, size: tuple[int, int]) -> Ints:
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
