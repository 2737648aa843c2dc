"""least_cost_transport: rearranges the patches of an image so that salient ones are visible."""

from __future__ import annotations

from mixup_core.arrays import NDArray, np, scipy


def least_cost_transport(
    shares: NDArray[np.float64], shown: NDArray[np.float64], cost: float
) -> NDArray[np.int64]:
    """Return the index of the patch to show at each position, (positions,), row by row.

    The result is a permutation of the patches with minimal total cost. Each move costs `cost` times
    its squared distance, in units of the longer side of the grid. The saliency of each patch that
    ends at a visible position is subtracted.
    """
    rows, columns = shares.shape
    place = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    square = ((place[:, None] - place) ** 2).sum(axis=2) / max(rows - 1, columns - 1, 1) ** 2
    gains = shares.reshape(-1, 1) * (shown.reshape(1, -1) > 0)
    patches, places = scipy.optimize.linear_sum_assignment(cost * square - gains)
    sources: NDArray[np.int64] = np.empty(rows * columns, dtype=np.int64)
    sources[places] = patches
    return sources
