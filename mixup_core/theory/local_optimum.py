"""local_weights: the label weight of each class among the mixed points near a position.

The classifier with the lowest possible mixed loss predicts, at each position, the class with the
largest label weight among the mixed points at this position. For a finite set of points, the mixed
points within a radius are used instead.

Source: Chidambaram et al. 2022, arXiv:2110.07647: the closed form of the mixup-optimal classifier,
and the condition of theorem 3.2, which compares these weights at each point.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.laws import Law

_CELLS = 4096
"""Number of cells of [0, 1]; lam is rounded to their edges."""


def local_weights(
    places: Floats, points: Floats, labels: NDArray[Any], law: Law, radius: float
) -> Floats:
    """Return the mean label weight of each class near given positions: (places, classes).

        W_c(z) = mean over ordered pairs (u, v) of
                 E[lam [y_u = c] + (1 - lam) [y_v = c]; |lam u + (1 - lam) v - z| <= radius]

    E[X; A] means E[X 1(A)]. For each pair, the condition A holds on an interval of lam, so only the
    law's moments over intervals are needed.
    """
    counts = np.bincount(np.rint(law.nodes(_CELLS) * _CELLS).astype(int), minlength=_CELLS + 1)
    share = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    lams = np.arange(_CELLS + 1) / _CELLS
    moment = np.concatenate([[0.0], np.cumsum(lams * counts / counts.sum())])
    first, second = (index.ravel() for index in np.indices((len(points), len(points))))
    along = points[first] - points[second]
    squares = (along**2).sum(axis=1)
    safe = np.maximum(squares, np.finfo(float).tiny)
    classes = int(labels.max()) + 1
    weights = np.zeros((len(places), classes))
    for index, place in enumerate(places):
        away = place - points[second]
        middle = np.clip((away * along).sum(axis=1) / safe, -1e9, 1e9)
        spare = radius**2 - ((away - middle[:, None] * along) ** 2).sum(axis=1)
        half = np.sqrt(np.maximum(spare, 0) / safe)
        low = np.ceil(np.clip(middle - half, 0, 1) * _CELLS - 1e-9).astype(int)
        high = np.floor(np.clip(middle + half, 0, 1) * _CELLS + 1e-9).astype(int) + 1
        # An interval outside [0, 1] becomes empty, because both ends are clipped to the same value.
        is_met = (spare >= 0) & (middle - half <= 1) & (middle + half >= 0)
        is_point = (squares == 0) & ((away**2).sum(axis=1) <= radius**2)
        low, high = np.where(is_point, 0, low), np.where(is_point, _CELLS + 1, high)
        counted = (is_met | is_point) & (high > low)
        mass = np.where(counted, share[high] - share[np.minimum(low, high)], 0.0)
        of_first = np.where(counted, moment[high] - moment[np.minimum(low, high)], 0.0)
        weights[index] = np.bincount(labels[first], of_first, classes)
        weights[index] += np.bincount(labels[second], mass - of_first, classes)
    return weights / len(first)
