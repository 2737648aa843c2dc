"""draw_kept: which parts of a point stay, each by itself."""

import numpy as np
from numpy.typing import NDArray


def draw_kept(lam: NDArray[np.float64], parts: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which parts stay, each with probability lam: (..., parts).

    Args:
        lam: (...,), in [0, 1].
        parts: Of each point: cells of an image, patches of a synthetic point.
        rng: Source of the draws.
    """
    return rng.random((*lam.shape, parts)) < lam[..., None]
