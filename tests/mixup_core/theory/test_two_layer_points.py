from dataclasses import replace

import numpy as np
import pytest

from mixup_core.laws import Beta, Law, Midpoint
from mixup_core.theory.two_layer.config import PatchData, TwoLayerConfig
from mixup_core.theory.two_layer.points import (
    PatchSet,
    cut,
    draw_points,
    masked,
    mixed,
    training_points,
    training_set,
)

DATA = PatchData(classes=5, points_per_class=40, signal_patches=2, noise_classes=3)


def config(law: Law, **changes: object) -> TwoLayerConfig:
    return TwoLayerConfig(epochs=1, law=law, **changes)


@pytest.fixture
def points() -> PatchSet:
    return draw_points(DATA, DATA.points_per_class, 0, "training points")


def test_mixed_patches_and_targets_use_the_same_weights(points: PatchSet) -> None:
    pairs, lam = np.array([[0, 7, 50], [190, 7, 3]]), np.array([0.25, 0.5, 0.9])
    both = mixed(points, pairs, lam)
    for index, (i, j) in enumerate(pairs.T):
        own, partner = lam[index], 1 - lam[index]
        expected = own * points.patches[:, i] + partner * points.patches[:, j]
        np.testing.assert_allclose(both.patches[:, index], expected, rtol=1e-15)
        target = np.zeros(5)
        target[points.labels[i]] += own
        target[points.labels[j]] += partner
        np.testing.assert_allclose(both.targets[:, index], target)


def test_cutmix_takes_patches_from_either_point_and_targets_by_their_share(
    points: PatchSet,
) -> None:
    i, j, lam = 0, 190, 0.3
    pairs = np.tile([[i], [j]], 2_000)
    cuts = cut(points, pairs, np.full(2_000, lam), np.random.default_rng(0))
    own, partner = cuts.counts[:5], cuts.counts[5:]
    np.testing.assert_array_equal(own + partner, points.counts[:, pairs[0]])
    assert set(np.unique(own[:4])) == {0, 1}
    # Every patch is x_i's with probability lam: 304 of them, in 2,000 points.
    np.testing.assert_allclose(own.mean(axis=1) / points.counts[:, i], lam, atol=0.045)
    spread = 300 * lam * (1 - lam)
    assert own[4].var() == pytest.approx(spread, rel=0.15)
    share = own.sum(axis=0) / DATA.patches
    np.testing.assert_allclose(cuts.targets[points.labels[i]], share)
    np.testing.assert_allclose(cuts.targets[points.labels[j]], 1 - share)
    expected = own.T @ points.patches[:, i] + partner.T @ points.patches[:, j]
    np.testing.assert_allclose(cuts.pooled, expected, rtol=1e-12)


def test_masking_drops_patches_and_keeps_the_label(points: PatchSet) -> None:
    chosen = np.full(2_000, 7)
    left = masked(points, chosen, np.full(2_000, 0.8), np.random.default_rng(0))
    assert set(np.unique(left.counts[:4])) == {0, 1}
    np.testing.assert_allclose(left.counts.mean(axis=1) / points.counts[:, 7], 0.8, atol=0.04)
    assert (left.targets == points.targets[:, [7]]).all()
    expected = left.counts.T @ points.patches[:, 7]
    np.testing.assert_allclose(left.pooled, expected, rtol=1e-12)


@pytest.mark.parametrize("features", [2, 4])
def test_signals_share_delta2_equally_and_noise_has_all_features_of_other_classes(
    features: int,
) -> None:
    data = replace(DATA, features=features, delta2=float(features))
    many = draw_points(data, 1_000, 0, "training points")
    assert many.counts[:, 0].tolist() == [1.0] * 2 * features + [data.noise_patches * 25]
    assert np.bincount(many.labels).tolist() == [1_000] * 5
    shares = many.patches[:-1].sum(axis=2).reshape(features, 2, -1)
    np.testing.assert_allclose(shares.sum(axis=0), features)
    assert shares.min() >= 0.5
    np.testing.assert_allclose(shares.mean(axis=(1, 2)), 1.0, atol=0.02)
    low, high = 0.0425 * 5**-1.5, 0.055 * 5**-1.5
    for point in (0, 2_500, 4_999):
        y = many.labels[point]
        for feature in range(features):
            own = many.patches[2 * feature, point]
            assert np.flatnonzero(own).tolist() == [features * y + feature]
        noise = many.patches[-1, point].reshape(5, features)
        assert not noise[y].any()
        others = noise[noise.any(axis=1)]
        assert others.shape == (3, features)
        assert low <= others.min() <= others.max() <= high


def test_each_pair_is_mixed_at_every_node_of_the_law() -> None:
    law, data = Beta(alpha=2.0), PatchData(classes=3, points_per_class=5)
    points = training_points(config(law, data=data))
    drawn = training_set(config(law, data=data), points)
    noded = training_set(config(law, data=data, nodes=4), points)
    assert noded.targets.shape[1] == 4 * drawn.targets.shape[1]
    assert noded.entropy == pytest.approx(drawn.entropy, rel=0.2)
    first = noded.patches[:, :4]
    np.testing.assert_allclose(first[:, ::-1].sum(axis=1), first.sum(axis=1))
    (one,) = (training_set(config(Midpoint(), data=data, nodes=n), points) for n in (4,))
    assert one.targets.shape[1] == drawn.targets.shape[1]
