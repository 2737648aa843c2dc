"""least_cost_transport: rearranges the patches of an image so that salient ones are visible."""

import numpy as np
from numpy.typing import NDArray


def least_cost_transport(
    shares: NDArray[np.float64], shown: NDArray[np.float64], cost: float
) -> NDArray[np.int64]:
    """Return the index of the patch to show at each position, (positions,), row by row.

    The result is a permutation. It minimises the sum over patches of `cost` times the squared
    distance of the move (in units of the longer side of the grid), minus the saliency of the
    patches at visible positions.

    Args:
        shares: Share of each patch in the saliency of the image, (rows, columns).
        shown: Weight of the image at each position, (rows, columns); above 0 it is visible there.
        cost: Cost of a move over the whole side.
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = shares.shape
    place = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    square = ((place[:, None] - place) ** 2).sum(axis=2) / max(rows - 1, columns - 1, 1) ** 2
    gains = shares.reshape(-1, 1) * (shown.reshape(1, -1) > 0)
    patches, places = linear_sum_assignment(cost * square - gains)
    sources: NDArray[np.int64] = np.empty(rows * columns, dtype=np.int64)
    sources[places] = patches
    return sources
