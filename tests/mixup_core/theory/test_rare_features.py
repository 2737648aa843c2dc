from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from mixup_core.arrays import Floats
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.laws.schedules import Easy
from mixup_core.seeding import stream
from mixup_core.theory.patch_mixing import (
    FeatureTeacher,
    PatchCutMix,
    PatchLinear,
    PatchMask,
    PatchOperation,
)
from mixup_core.theory.rare_features import Patches, RareFeaturesConfig, draw_mixings, draw_patches
from tests.mixup_core.theory.processes import last

UNIFORM = Beta(alpha=1.0)
CONFIG = RareFeaturesConfig(
    law=UNIFORM, points=12, dimension=30, patches=5, neurons=3, noise_features=2, noise_sd=0.5,
    test_points=20, steps_per_epoch=4, epochs=3, initial_sd=0.2, rarity=0.4,
)  # fmt: skip
OPERATIONS: list[PatchOperation] = [PatchLinear(), PatchCutMix(), PatchMask()]


def full(part: Patches) -> Floats:
    """Return the patches with all coordinates, features and Gaussian noise: (points, P, d)."""
    points, patches, _ = part.features.shape
    whole = np.zeros((points * patches, 4 + part.noise.shape[1]))
    whole[:, :4] = part.features.reshape(-1, 4)
    whole[part.places, 4:] = part.noise
    return whole.reshape(points, patches, -1)


def test_points_have_one_feature_patch_and_the_configured_noise_patches() -> None:
    patches = draw_patches(CONFIG, stream(0, "training points"), 400, 0.4)
    whole = full(patches)
    assert whole.shape == (400, 5, 30)
    has_feature = (whole[..., :4] == 1).sum(axis=1)  # of each point, which feature it has
    assert (has_feature.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(has_feature.argmax(axis=1) % 2, patches.labels)
    assert (has_feature.argmax(axis=1) >= 2).mean() == pytest.approx(0.4, abs=0.08)
    assert ((whole[..., :4] == CONFIG.noise_scale).any(axis=2).sum(axis=1) == 2).all()
    is_noise = (whole[..., 4:] != 0).any(axis=2)
    assert (is_noise.sum(axis=1) == CONFIG.patches - 1 - CONFIG.noise_features).all()
    assert not whole[is_noise][:, :4].any()
    assert whole[is_noise][:, 4:].std() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("law", [UNIFORM, Midpoint(), Erm()])
def test_training_steps_match_autograd_on_the_full_patches(
    operation: PatchOperation, law: Law
) -> None:
    config = replace(CONFIG, law=law, operation=operation)
    rng = stream(0, "training points")
    data = draw_patches(config, rng, config.points, config.rarity)
    inputs, labels = torch.from_numpy(full(data)), np.eye(2)[data.labels]
    shape = config.dimension, 2 * config.neurons
    initial = stream(0, "initial weights").normal(0, config.initial_sd, shape)
    weights = torch.from_numpy(initial).requires_grad_()

    def logits(x: torch.Tensor) -> torch.Tensor:
        return ((x @ weights) ** 2).reshape(*x.shape[:2], 2, -1).sum(dim=(1, 3))

    losses = []
    for epoch in range(config.epochs):
        mixings = draw_mixings(config, law, stream(0, "mixing", epoch), config.steps_per_epoch)
        for mixing in mixings:
            own, partner = (
                torch.from_numpy(part.copy())[..., None] for part in (mixing.own, mixing.partner)
            )
            target = mixing.label[:, None] * labels
            target = target + (1 - mixing.label[:, None]) * labels[mixing.order]
            mixed = own * inputs + partner * inputs[mixing.order.copy()]
            loss = cross_entropy(logits(mixed), torch.from_numpy(target))
            losses.append(float(loss.detach()))
            (gradient,) = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                weights -= config.lr * gradient
    metrics = last(config)
    assert metrics["train/loss"] == pytest.approx(np.mean(losses[-4:]), rel=1e-10)
    squares = (weights.detach().numpy()[:4] ** 2).reshape(4, 2, -1).sum(axis=2)
    common, rare = min(squares[0, 0], squares[1, 1]), min(squares[2, 0], squares[3, 1])
    assert metrics["feature/common"] == pytest.approx(common, rel=1e-10)
    assert metrics["feature/rare"] == pytest.approx(rare, rel=1e-10)
    rng = stream(0, "test points")
    for name, rarity in (("common", 0.0), ("rare", 1.0)):
        test = draw_patches(config, rng, config.test_points, rarity)
        wrong = logits(torch.from_numpy(full(test))).argmax(dim=1).numpy() != test.labels
        assert metrics[f"test/{name}_error"] == wrong.mean()


def test_operations_keep_the_expected_patches_and_labels() -> None:
    mixings = {
        operation: draw_mixings(
            replace(CONFIG, operation=operation), UNIFORM, stream(0, "mixing"), 9
        )
        for operation in OPERATIONS
    }
    for linear, cut, mask in zip(*mixings.values(), strict=True):
        assert sorted(linear.order) == list(range(12))
        np.testing.assert_array_equal(linear.own, linear.label[:, None] * np.ones((12, 5)))
        np.testing.assert_array_equal(linear.own + linear.partner, 1)
        assert set(np.unique(cut.own)) <= {0.0, 1.0}
        np.testing.assert_array_equal(cut.own + cut.partner, 1)
        np.testing.assert_allclose(cut.label, cut.own.mean(axis=1))
        assert not mask.partner.any()
        assert (mask.label == 1).all()


def test_a_feature_teacher_keeps_points_by_the_loss_of_the_network() -> None:
    law = Beta(alpha=1.0)
    data = draw_patches(CONFIG, stream(0, "training points"), 40, 0.5)
    (mixing,) = draw_mixings(replace(CONFIG, points=40), law, stream(0, "mixing"), 1)
    targets = mixing.targets(data.labels)
    np.testing.assert_allclose(targets.sum(axis=1), 1)
    low, high = (
        FeatureTeacher(features=data.features, keep=keep, scale=4.0) for keep in ("low", "high")
    )
    losses = np.where(np.arange(40) % 2, 1e9, 0.0)
    assert low.kept(mixing, targets, losses).tolist() == [False, True] * 20
    assert high.kept(mixing, targets, losses).tolist() == [True, False] * 20


def test_a_schedule_sets_the_law_of_each_record() -> None:
    config = replace(CONFIG, law=Erm(), schedule=Easy(), epochs=4)
    assert [round(config.law_at(epoch).variance, 3) for epoch in range(4)] == [
        0.012, 0.034, 0.083, 0.153,
    ]  # fmt: skip
