from dataclasses import replace

import numpy as np
import pytest

from mixup_core.config.building import with_values
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.problem import DivergedError
from mixup_core.theory.patch_mixing import PatchCutMix, PatchMask, PatchOperation
from mixup_core.theory.two_layer.config import (
    Descent,
    Integrator,
    PatchData,
    PatchNetwork,
    Rkc,
    TwoLayerConfig,
)
from mixup_core.theory.two_layer.network import PatchOutputs
from mixup_core.theory.two_layer.points import PatchSet, fresh_points
from mixup_core.theory.two_layer.training import (
    correlations,
    feature_accuracy,
    is_linearly_separable,
    is_right,
    start,
)
from tests.mixup_core.theory.processes import assert_resumes_anywhere, finished, last

UNIFORM = Beta(alpha=1.0)
SMALL = TwoLayerConfig(
    data=PatchData(classes=3, points_per_class=10, test_points_per_class=20),
    network=PatchNetwork(power=6, init=0.1),
    pairs_per_class=15,
    records_per_decade=4,
    epochs=6,
)
"""A run that takes a tenth of a second."""


def test_a_descent_resumed_at_any_epoch_ends_with_the_same_bits() -> None:
    assert_resumes_anywhere(replace(SMALL, law=UNIFORM, integrator=Descent(step=2.0)))


def test_descent_records_at_the_first_whole_step_at_or_after_each_time() -> None:
    records = finished(replace(SMALL, integrator=Descent(step=3.0), epochs=5))
    assert [record.metrics["flow/time"] for record in records] == [12, 18, 33, 57, 102]
    assert [record.metrics["flow/evaluations"] for record in records] == [4, 6, 11, 19, 34]


@pytest.mark.parametrize(("law", "one", "both"), [(Erm(), 3, 0), (Midpoint(), 0, 3)])
def test_erm_learns_one_feature_of_a_class_and_midpoint_both(law: Law, one: int, both: int) -> None:
    metrics = last(with_values(SMALL, {"law": law, "network.power": 8, "epochs": 24}))
    assert metrics["train/error"] == metrics["test/error"] == 0
    assert metrics["features/one"] == pytest.approx(one / 3)
    assert metrics["features/both"] == pytest.approx(both / 3)
    assert metrics["features/none"] == 0
    assert metrics["features/missing"] == pytest.approx(one / 6)
    assert 0 <= metrics["train/excess_loss"] < 0.001
    # Of order log k at least where a feature is learned.
    assert metrics["correlation/stronger"] > 5
    assert (metrics["correlation/weaker"] > 5) == (both == 3)


@pytest.mark.parametrize("integrator", [Rkc(), Descent()], ids=["rkc", "descent"])
def test_non_finite_weights_end_the_run(integrator: Integrator) -> None:
    process = start(replace(SMALL, integrator=integrator))
    process.state["y"] = np.full_like(process.state["y"], np.nan)
    with pytest.raises(DivergedError) as caught:
        next(iter(process))
    assert caught.value.epoch == 0


@pytest.mark.parametrize("operation", [PatchCutMix(), PatchMask()], ids=["cutmix", "mask"])
def test_cutmix_and_masking_train_differently_from_mixup(
    operation: PatchOperation,
) -> None:
    run = replace(SMALL, law=UNIFORM, epochs=9)
    plain, other = last(run), last(replace(run, operation=operation))
    assert other["train/loss"] != plain["train/loss"]
    assert other["train/error"] < 0.2
    assert last(replace(run, law=Erm(), operation=operation)) == last(replace(run, law=Erm()))


CONFIG = TwoLayerConfig(
    epochs=1,
    data=PatchData(classes=4, signal_patches=2, test_points_per_class=50),
    network=PatchNetwork(neurons=1),
)


def test_a_tie_between_outputs_counts_as_wrong() -> None:
    outputs = np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert is_right(outputs, np.array([0, 0, 0, 2])).tolist() == [False, False, True, True]


def test_feature_accuracy_matches_setting_the_patches_of_the_other_feature_to_zero() -> None:
    points = fresh_points(CONFIG)
    weights = np.random.default_rng(5).normal(0, 0.3, (4, 4, 8))
    alone, both = feature_accuracy(PatchOutputs(points, CONFIG), points, weights)
    for feature in range(2):
        patches = points.patches.copy()
        for point, y in enumerate(points.labels):
            patches[:-1, point, 2 * y + 1 - feature] = 0
        inputs = np.einsum("yrc,pnc->yrpn", weights, patches)
        rho, power = CONFIG.rho, 8
        excited = np.where(
            inputs < rho,
            np.maximum(inputs, 0) ** power / (power * rho ** (power - 1)),
            inputs - (1 - 1 / power) * rho,
        )
        outputs = np.einsum("yrpn,pn->yn", excited, points.counts)
        right = (outputs.argmax(axis=0) == points.labels).reshape(4, 50)
        np.testing.assert_array_equal(alone[:, feature], right.mean(axis=1))
    assert ((alone > 0) & (alone < 1)).any()
    assert alone.mean() != both.mean()


def test_correlations_sum_only_active_neurons_of_the_same_class() -> None:
    weights = np.zeros((4, 4, 8))
    weights[2, :, 5] = [0.49, 0.5, 1.0, -7.0]  # v_{2,2}
    weights[2, 0, 2] = 9.0  # v_{1,1}: another class
    weights[0, 1, 5] = 9.0  # a neuron of another class
    expected = np.zeros((4, 2))
    expected[2, 1] = 1.5
    np.testing.assert_array_equal(correlations(weights, 0.5), expected)


def labelled(inputs: list[list[float]], labels: list[int]) -> PatchSet:
    targets = np.eye(max(labels) + 1)[:, labels]
    return PatchSet(patches=np.array([inputs]), counts=np.ones((1, len(labels))), targets=targets)


def test_linear_separability_is_tested_without_an_intercept() -> None:
    assert is_linearly_separable(labelled([[1.0, 0.2], [-1.0, 0.2]], [0, 1]))
    # Without an intercept nothing separates two points on one ray.
    assert not is_linearly_separable(labelled([[1.0, 1.0], [2.0, 2.0]], [0, 1]))


def test_three_classes_are_separable_only_when_every_margin_is_positive() -> None:
    corners = [[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]]
    assert is_linearly_separable(labelled(corners, [0, 1, 2]))
    centre = np.mean(corners[:2], axis=0).tolist()
    assert not is_linearly_separable(labelled([*corners, centre], [0, 1, 2, 2]))
