"""Mixing: coefficients that mix a step's points. FeatureTeacher: selects mixed points by loss."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixing:
    """Coefficients with which one training step mixes its points and labels.

    A mixed point is own * x + partner * x[order], its label label * y + (1 - label) * y[order]. P
    is the number of patches of a point.
    """

    own: Floats
    """Factor of each patch of the point itself, (points, P)."""
    partner: Floats
    """Factor of each patch of the partner, (points, P)."""
    label: Floats
    """Weight of the point's own label, (points,)."""
    order: NDArray[Any]
    """Index of each point's partner, a permutation, (points,)."""

    def targets(self, labels: NDArray[Any]) -> Floats:
        """Return the mixed labels, (points, 2), from labels 0 or 1, (points,)."""
        first = (self.label * (labels == 0)) + (1 - self.label) * (labels[self.order] == 0)
        return np.column_stack([first, 1 - first])

    def mixed(self, scores: Floats) -> Floats:
        """Return a function's values on mixed patches, if the function is linear in a patch.

        Args:
            scores: (points, P, any), the values on the unmixed patches.
        """
        mixed: Floats = self.own[..., None] * scores + self.partner[..., None] * scores[self.order]
        return mixed


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FeatureTeacher:
    """Teacher that knows the four features without noise, and selects mixed points by loss.

    For each mixed point, r = loss of the teacher - loss of the student. The teacher's logits are
    the summed squares of the features of each class, times a scale.

    Source: slides on data valuation for mixup; there the teacher is a trained network.
    """

    features: Floats
    """Coordinates of the unmixed points along v, u, v', u', (points, P, 4)."""
    keep: Literal["low", "high"]
    """Points to keep: `low` those with r <= 0, `high` the others."""
    scale: float
    """Teacher's logit of the correct class for a point with one feature."""

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
