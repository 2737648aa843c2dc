"""Mixing of points that consist of patches: operations, coefficients, selection by a teacher."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from mixup_core.arrays import Floats, Ints, NDArray, special


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchLinear:
    """Mixup: lam x + (1 - lam) x' for a point x and its partner x'; the label weight is lam."""

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "linear"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutMix:
    """CutMix: keeps each patch of a point with probability lam, else shows the partner's patch.

    The label weight is the fraction of patches kept.
    """

    tag: ClassVar = "cutmix"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchMask:
    """Keeps each patch of a point with probability lam, sets others to 0, and keeps the label."""

    tag: ClassVar = "mask"


PatchOperation = PatchLinear | PatchCutMix | PatchMask


class Mixing(NamedTuple):
    """Coefficients with which one training step mixes its points and labels.

    For points x of P patches each with labels y, the fields give the mixed points
    own * x + partner * x[order] and the mixed labels label * y + (1 - label) * y[order].
    """

    own: Floats
    """Factor of each patch of the point itself, (points, P)."""
    partner: Floats
    """Factor of each patch of the partner, (points, P)."""
    label: Floats
    """Weight of the point's own label, (points,)."""
    order: Ints
    """Index of each point's partner, a permutation, (points,)."""

    def targets(self, labels: Ints) -> Floats:
        """Return the mixed labels, each as the weights of the two classes: (points, 2)."""
        first = (self.label * (labels == 0)) + (1 - self.label) * (labels[self.order] == 0)
        return np.column_stack([first, 1 - first])

    def mixed(self, scores: Floats) -> Floats:
        """Return the values of a linear function of patches, such as <w, x>, on mixed patches."""
        mixed: Floats = self.own[..., None] * scores + self.partner[..., None] * scores[self.order]
        return mixed


class FeatureTeacher(NamedTuple):
    """Selects mixed points for training by comparing the network's loss with that of a teacher.

    The teacher is a fixed classifier whose input is the features without the Gaussian noise: v and
    v' of label 0, u and u' of label 1. Its logit of a class is a scale times the sum of squared
    coordinates along the features of the class.

    Source: slides on data valuation for mixup, in which the teacher is a trained network.
    """

    features: Floats
    """Coordinates of the patches of the unmixed points along v, u, v', u', (points, P, 4)."""
    keep: Literal["low", "high"]
    """Points to keep: `low` where the teacher's loss is at most the network's, `high` others."""
    scale: float
    """Logit that the teacher gives to the correct class of an unmixed point with one feature."""

    def kept(self, mixing: Mixing, targets: Floats, losses: Floats) -> "NDArray[np.bool_]":
        """Return True for each mixed point that is used for training: (points,)."""
        squares = (mixing.mixed(self.features) ** 2).sum(axis=1)
        logits = self.scale * (squares[:, :2] + squares[:, 2:])
        own: Floats = -(targets * special.log_softmax(logits, axis=1)).sum(axis=1)
        return np.asarray((own <= losses) == (self.keep == "low"))
