"""draw_kept: draws which parts of an image are kept; the partner's parts replace the others."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

from __future__ import annotations

from mixup_core.arrays import NDArray, np


def draw_kept(lam: NDArray[np.float64], parts: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw which parts each image keeps when it is mixed: each with probability lam, independently.

    Args:
        lam: Mixing weights, one per image, of any shape, in [0, 1].
        parts: Number of parts of each image: cells of a grid, or patches of a data point in the
            problem rare-features.
        rng: Random generator.

    Returns:
        True for each part that is kept: (shape of `lam`, parts).
    """
    return rng.random((*lam.shape, parts)) < lam[..., None]
