"""PatchSet: labelled points made of patches, and functions that draw and mix such points.

Coordinate L y + l - 1 of a patch is its component along feature l of class y, v_{y,l}, with y from
0 to k - 1 and l from 1 to L. The features are orthonormal and span the data. The part of a weight
that is orthogonal to all features never changes and has no effect, so these L k coordinates give
exact results for any dimension d of the patches.
"""

from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.contracts import weights_of
from mixup_core.seeding import Purpose, stream
from mixup_core.theory.patch_mixing import PatchCutMix, PatchLinear, PatchMask
from mixup_core.theory.two_layer.config import PatchData, TwoLayerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchSet:
    """Points made of patches, with soft labels; equal patches of a point are stored once."""

    patches: Floats
    """Coordinates of the stored patches, (patches, points, L k): C_P patches with feature 1 of the
    class, then those with feature 2, and so on, and one of noise. `cut` stores both points'.
    """
    counts: Floats
    """Number of equal patches of the point that each stored patch represents, (patches, points)."""
    targets: Floats
    """Probability of each class, (k, points); columns sum to 1."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """The most probable class of each point, (points,); of equally probable ones, the first."""
        labels: NDArray[np.int64] = self.targets.argmax(axis=0)
        return labels

    @property
    def pooled(self) -> Floats:
        """Sum of each point's patches, (points, L k); a linear model depends only on it."""
        pooled: Floats = np.einsum("pn,pnc->nc", self.counts, self.patches)
        return pooled

    @property
    def entropy(self) -> float:
        """Mean entropy of the targets, in nats: a lower bound of the loss on these points."""
        logs = np.log(np.where(self.targets > 0, self.targets, 1.0))
        return float(-(self.targets * logs).sum(axis=0).mean())


def draw_points(data: PatchData, points_per_class: int, seed: int, purpose: Purpose) -> PatchSet:
    """Draw random points, the same number of each class, ordered by class."""
    classes, signals, others = data.classes, data.signal_patches, data.noise_classes
    labels = np.repeat(np.arange(classes), points_per_class)
    points = np.arange(len(labels))
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    rng = stream(seed, purpose)
    shares = _drawn_shares(data, len(labels), rng)
    # Sorting k - 1 random numbers permutes the classes other than y; the first of them are used.
    ranks = rng.random((len(labels), classes - 1)).argsort(axis=1)[:, :others]
    noise_labels = (labels[:, None] + 1 + ranks) % classes
    low, high = data.noise_range
    features = data.features
    gamma = low + (high - low) * rng.random((features, len(labels), others))

    patches = np.zeros((features * signals + 1, len(labels), data.span))
    for feature in range(features):
        for patch in range(signals):
            place = feature * signals + patch, points, features * labels + feature
            patches[place] = shares[feature, patch]
        patches[-1, points[:, None], features * noise_labels + feature] = gamma[feature]
    counts = np.ones(patches.shape[:2])
    counts[-1] = data.patches - features * signals
    return PatchSet(patches=patches, counts=counts, targets=np.eye(classes)[:, labels])


def _drawn_shares(data: PatchData, points: int, rng: np.random.Generator) -> Floats:
    """Draw the correlations of the signal patches with their features: (L, C_P, points)."""
    spare = data.delta2 - data.features * data.delta1
    if data.features == 2:
        beta = data.delta1 + spare * rng.random((data.signal_patches, points))
        return np.stack([beta, data.delta2 - beta])
    drawn = rng.standard_exponential((data.features, data.signal_patches, points))
    shares: Floats = data.delta1 + spare * drawn / drawn.sum(axis=0)
    return shares


def mixed(points: PatchSet, pairs: NDArray[np.int64], lam: Floats) -> PatchSet:
    """Return linearly mixed points `lam x_i + (1 - lam) x_j` with mixed targets (mixup)."""
    own, partner = pairs
    weight = lam[:, None]
    patches = points.patches
    return PatchSet(
        patches=weight * patches[:, own] + (1 - weight) * patches[:, partner],
        counts=points.counts[:, own],
        targets=lam * points.targets[:, own] + (1 - lam) * points.targets[:, partner],
    )


def cut(
    points: PatchSet, pairs: NDArray[np.int64], lam: Floats, rng: np.random.Generator
) -> PatchSet:
    """Return points whose patches come from x_i with probability lam each, else from x_j (CutMix).

    The label weight of x_i is the fraction of its patches.
    """
    own, partner = pairs
    kept = _kept(points.counts[:, own], lam, rng)
    share = kept.sum(axis=0) / points.counts[:, own].sum(axis=0)
    return PatchSet(
        patches=np.concatenate([points.patches[:, own], points.patches[:, partner]]),
        counts=np.concatenate([kept, points.counts[:, own] - kept]),
        targets=share * points.targets[:, own] + (1 - share) * points.targets[:, partner],
    )


def masked(
    points: PatchSet, chosen: NDArray[np.int64], lam: Floats, rng: np.random.Generator
) -> PatchSet:
    """Return points whose patches are kept with probability lam each; labels do not change."""
    return PatchSet(
        patches=points.patches[:, chosen],
        counts=_kept(points.counts[:, chosen], lam, rng),
        targets=points.targets[:, chosen],
    )


def _kept(counts: Floats, lam: Floats, rng: np.random.Generator) -> Floats:
    """Draw how many of the equal patches of a point are kept, each with probability lam."""
    return rng.binomial(counts.astype(np.int64), lam).astype(np.float64)


def training_points(config: TwoLayerConfig) -> PatchSet:
    return draw_points(config.data, config.data.points_per_class, config.seed, "training points")


def fresh_points(config: TwoLayerConfig) -> PatchSet:
    return draw_points(config.data, config.data.test_points_per_class, config.seed, "test points")


def training_set(config: TwoLayerConfig, points: PatchSet) -> PatchSet:
    """Return the points of the training loss: `points` under ERM, else mixed pairs of them.

    The operation `mask` mixes no pairs, but removes patches of points.
    """
    if not config.law.mixes:
        return points
    num_pairs = config.pairs_per_class * config.classes
    num_points = points.targets.shape[1]
    pairs = stream(config.seed, "mixed pairs").integers(num_points, size=(2, num_pairs))
    rng = stream(config.seed, "mixing")
    if config.nodes:
        nodes = config.law.nodes(config.nodes)
        return mixed(points, np.repeat(pairs, len(nodes), axis=1), np.tile(nodes, num_pairs))
    lam = weights_of(config.law, num_pairs, rng)
    match config.operation:
        case PatchLinear():
            return mixed(points, pairs, lam)
        case PatchCutMix():
            return cut(points, pairs, lam, rng)
        case PatchMask():
            return masked(points, pairs[0], lam, rng)
        case _:
            assert_never(config.operation)
