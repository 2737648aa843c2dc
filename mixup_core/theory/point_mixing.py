"""Mixing: the coefficients with which a step mixes points, and a teacher that selects points."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixing:
    """The coefficients with which a step mixes its points.

    own * x + partner * x[order], label * y + (1 - label) y'.
    """

    own: Floats
    """(points, P), factor of each patch of the point."""
    partner: Floats
    """(points, P), factor of each patch of the partner."""
    label: Floats
    """(points,), weight of the point's label."""
    order: NDArray[Any]
    """(points,), index of each point's partner: a permutation."""

    def targets(self, labels: NDArray[Any]) -> Floats:
        """Return the mixed labels, (points, 2), from labels 0 or 1, (points,)."""
        first = (self.label * (labels == 0)) + (1 - self.label) * (labels[self.order] == 0)
        return np.column_stack([first, 1 - first])

    def mixed(self, scores: Floats) -> Floats:
        """Return the values for mixed patches of a function that is linear in a patch.

        Args:
            scores: (points, P, any), the values for the unmixed patches.
        """
        mixed: Floats = self.own[..., None] * scores + self.partner[..., None] * scores[self.order]
        return mixed


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FeatureTeacher:
    """A network that knows the four features without noise, and selects mixed points by loss.

    For each mixed point, r = loss of the teacher - loss of the student. The teacher's logits are
    the summed squares of the features of each class, times a scale.

    Source: slides on data valuation for mixup; there the teacher is a trained network.
    """

    features: Floats
    """(points, P, 4), the coordinates of the unmixed points along v, u, v', u'."""
    keep: Literal["low", "high"]
    """`low` keeps points with r <= 0, `high` the others."""
    scale: float
    """Logit of a point with one feature."""

    def kept(self, mixing: Mixing, targets: Floats, losses: Floats) -> NDArray[np.bool_]:
        """Return which mixed points are kept: (points,).

        Args:
            mixing: Mixing of the step.
            targets: (points, 2), the mixed labels.
            losses: (points,), the student's.
        """
        from scipy.special import log_softmax

        squares = (mixing.mixed(self.features) ** 2).sum(axis=1)
        logits = self.scale * (squares[:, :2] + squares[:, 2:])
        own: Floats = -(targets * log_softmax(logits, axis=1)).sum(axis=1)
        is_behind: NDArray[np.bool_] = own <= losses
        return is_behind if self.keep == "low" else ~is_behind
