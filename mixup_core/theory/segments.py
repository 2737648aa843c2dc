"""Segments: exact distances from points to segments, and from points to mixed points."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.rules import RuleError


def distances_to_segments(points: Floats, starts: Floats, ends: Floats) -> Floats:
    """Return the distance of each point to the nearest segment: (points,).

    Args:
        points: (points, d).
        starts: (segments, d), at least one.
        ends: As `starts`; a segment may be a point.
    """
    along = ends - starts
    lengths = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    from_start = points[:, None] - starts
    shares = np.clip((from_start * along).sum(axis=2) / lengths, 0, 1)
    nearest: Floats = np.linalg.norm(from_start - shares[..., None] * along, axis=2).min(axis=1)
    return nearest


def mixed_distances(
    points: Floats,
    labels: NDArray[Any],
    *,
    endpoints: Literal["both", "either"] = "both",
    lam_range: tuple[float, float] = (0.0, 1.0),
) -> Floats:
    """Return the distance from each point to the nearest mixed point of other classes: (points,).

    For a point x of class i, it is the least distance to z = lam u + (1 - lam) v over all data
    points u, v and all lam in a range. If it is above 0 for every point, no mixed label contradicts
    a point's own label, and a classifier that is optimal for the mixed loss is optimal for the
    original loss. In closed form lam = <x - v, u - v> / ||u - v||^2, limited to the range;
    everything follows from the matrix of inner products. The cost is points^3 in any dimension, and
    a distance has an error of about 1e-8 of the points' norm.

    Source: Chidambaram et al. 2022, arXiv:2110.07647, theorem 2.10 and the proxy measured there,
    which samples lam and pairs; this function uses all.

    Args:
        points: (points, d), finite.
        labels: (points,).
        endpoints: `both`: u and v are of another class than x. `either`: at least one is, and
            neither is x itself.
        lam_range: Least and greatest lam, in [0, 1]; (1/2, 1/2) is midpoint mixing.

    Raises:
        RuleError: If the range is empty, or a point has no such pair.
    """
    low, high = lam_range
    if not 0 <= low <= high <= 1:
        raise RuleError("0 <= least lam <= greatest lam <= 1", {"lam_range": lam_range})
    centred = points - points.mean(axis=0)  # loses fewer digits below
    inner = centred @ centred.T
    squares = np.diag(inner)
    lengths = squares[:, None] + squares - 2 * inner
    safe = np.maximum(lengths, np.finfo(float).tiny)
    nearest = np.empty(len(points))
    for index, label in enumerate(labels):
        differs = labels != label
        usable = differs if endpoints == "both" else np.arange(len(points)) != index
        chosen = np.flatnonzero(usable)
        pick = np.ix_(chosen, chosen)
        to_start = squares[index] - 2 * inner[index, chosen] + squares[chosen]  # ||x - v||^2
        along = (  # <x - v, u - v>, u by row and v by column
            inner[index, chosen][:, None] - inner[index, chosen] - inner[pick] + squares[chosen]
        )
        share = np.clip(along / safe[pick], low, high)
        found = to_start - 2 * share * along + share**2 * lengths[pick]
        if endpoints == "either":
            found = found[differs[chosen][:, None] | differs[chosen]]
        if not found.size:
            raise RuleError(
                "every point needs a point of another class", {"point": index, "label": label}
            )
        nearest[index] = np.sqrt(max(float(found.min()), 0.0))
    return nearest
