"""draw_kept: draws which parts of an image are kept and which its partner replaces."""

import numpy as np
from numpy.typing import NDArray


def draw_kept(lam: NDArray[np.float64], parts: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw which parts are kept, each independently with probability lam: (..., parts).

    Args:
        lam: Probability that a part is kept, (...,), in [0, 1].
        parts: Number of parts: cells of an image, or patches of a synthetic point.
        rng: Random generator.
    """
    return rng.random((*lam.shape, parts)) < lam[..., None]
