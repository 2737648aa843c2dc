"""Mixing: the terms by which one step mixes points made of patches, and a teacher that chooses."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixing:
    """The terms by which one step mixes its points.

    own * x + partner * x[order], label * y + (1 - label) y'.
    """

    own: Floats
    """(points, P)."""
    partner: Floats
    """(points, P)."""
    label: Floats
    """(points,)."""
    order: NDArray[Any]
    """(points,), the partner of each point: a permutation."""

    def targets(self, labels: NDArray[Any]) -> Floats:
        """Return the mixed labels, (points, 2), from labels 0 or 1, (points,)."""
        first = (self.label * (labels == 0)) + (1 - self.label) * (labels[self.order] == 0)
        return np.column_stack([first, 1 - first])

    def mixed(self, scores: Floats) -> Floats:
        """Return what is linear in a patch, (points, P, any), of the mixed patches."""
        mixed: Floats = self.own[..., None] * scores + self.partner[..., None] * scores[self.order]
        return mixed


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FeatureTeacher:
    """A network that knows the four features and no noise, and chooses mixed points by its losses.

    Of each mixed point r = loss of the teacher - loss of the student. Its logits are the summed
    squares of the features of each class, times a scale.

    Source: slides on data valuation for mixup; there the teacher is a network that was trained.
    """

    features: Floats
    """(points, P, 4), the coordinates of the unmixed points along v, u, v', u'."""
    keep: Literal["low", "high"]
    """`low` keeps r <= 0, `high` the others."""
    scale: float
    """Logit of a point with one feature."""

    def kept(self, mixing: Mixing, targets: Floats, losses: Floats) -> NDArray[np.bool_]:
        """Return which mixed points are kept: (points,).

        Args:
            mixing: Of the step.
            targets: (points, 2), the mixed labels.
            losses: (points,), the student's.
        """
        from scipy.special import log_softmax

        squares = (mixing.mixed(self.features) ** 2).sum(axis=1)
        logits = self.scale * (squares[:, :2] + squares[:, 2:])
        own: Floats = -(targets * log_softmax(logits, axis=1)).sum(axis=1)
        is_behind: NDArray[np.bool_] = own <= losses
        return is_behind if self.keep == "low" else ~is_behind
