import numpy as np
import pytest

from mixup_core.theory.two_layer.config import PatchData
from mixup_core.theory.two_layer.linear_models import is_linearly_separable
from mixup_core.theory.two_layer.points import PatchSet, draw_points


def points(inputs: list[list[float]], labels: list[int]) -> PatchSet:
    targets = np.eye(max(labels) + 1)[:, labels]
    return PatchSet(patches=np.array([inputs]), counts=np.ones((1, len(labels))), targets=targets)


def noise_over_signal(data: PatchData) -> float:
    """Return the ratio of the smallest pooled noise to the mean pooled signal of a feature.

        (P - L C_P) delta3 / (C_P delta2 / L)

    If the ratio is above 1, k >= 3 and every pair (class, noise class) occurs among the points,
    every linear model has errors: in the sum of its margins over a class y with noise s and the
    class s with noise y, the noise outweighs the signal.
    """
    noise = (data.patches - data.features * data.signal_patches) * data.noise_range[0]
    return noise / (data.signal_patches * data.delta2 / data.features)


def test_linear_separability_is_tested_without_an_intercept() -> None:
    assert is_linearly_separable(points([[1.0, 0.2], [-1.0, 0.2]], [0, 1]))
    # Without an intercept nothing separates two points on one ray.
    assert not is_linearly_separable(points([[1.0, 1.0], [2.0, 2.0]], [0, 1]))


def test_three_classes_are_separable_only_when_every_margin_is_positive() -> None:
    corners = [[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]]
    assert is_linearly_separable(points(corners, [0, 1, 2]))
    centre = np.mean(corners[:2], axis=0).tolist()
    assert not is_linearly_separable(points([*corners, centre], [0, 1, 2, 2]))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("classes", "ratio"), [(4, 1.02), (6, 1.249), (8, 1.4425)])
def test_the_default_data_are_not_linearly_separable(classes: int, ratio: float, seed: int) -> None:
    data = PatchData(classes=classes)
    assert noise_over_signal(data) == pytest.approx(ratio, abs=5e-4)
    assert not is_linearly_separable(draw_points(data, 20, seed, "training points"))


@pytest.mark.parametrize("seed", [0, 1])
def test_data_with_little_noise_are_linearly_separable(seed: int) -> None:
    data = PatchData(noise_patches=1)
    assert noise_over_signal(data) < 0.11
    assert is_linearly_separable(draw_points(data, 20, seed, "training points"))
