import numpy as np

from mixup_core.theory.two_layer.linear_models import is_linearly_separable
from mixup_core.theory.two_layer.points import PatchSet


def points(inputs: list[list[float]], labels: list[int]) -> PatchSet:
    targets = np.eye(max(labels) + 1)[:, labels]
    return PatchSet(patches=np.array([inputs]), counts=np.ones((1, len(labels))), targets=targets)


def test_linear_separability_is_tested_without_an_intercept() -> None:
    assert is_linearly_separable(points([[1.0, 0.2], [-1.0, 0.2]], [0, 1]))
    # Without an intercept nothing separates two points on one ray.
    assert not is_linearly_separable(points([[1.0, 1.0], [2.0, 2.0]], [0, 1]))


def test_three_classes_are_separable_only_when_every_margin_is_positive() -> None:
    corners = [[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]]
    assert is_linearly_separable(points(corners, [0, 1, 2]))
    centre = np.mean(corners[:2], axis=0).tolist()
    assert not is_linearly_separable(points([*corners, centre], [0, 1, 2, 2]))
