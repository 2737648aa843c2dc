"""Segments: exact distances from points to line segments."""

import numpy as np

from mixup_core.arrays import Floats


def distances_to_segments(points: Floats, starts: Floats, ends: Floats) -> Floats:
    """Return the distance from each point to the nearest line segment: (points,)."""
    along = ends - starts
    lengths = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    from_start = points[:, None] - starts
    shares = np.clip((from_start * along).sum(axis=2) / lengths, 0, 1)
    nearest: Floats = np.linalg.norm(from_start - shares[..., None] * along, axis=2).min(axis=1)
    return nearest
