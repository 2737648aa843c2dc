from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from mixup_core.laws import Erm
from mixup_core.theory.logistic import slopes
from mixup_core.theory.separability import SeparabilityConfig, draw_points, error, trained
from tests.mixup_core.theory.processes import finished

CONFIG = SeparabilityConfig(dimension=4, first_points=16, nodes=4, epochs=3)


def test_the_number_of_points_doubles_and_earlier_points_are_kept() -> None:
    few, more = draw_points(CONFIG, 1), draw_points(CONFIG, 2)
    assert len(few[0]) == 32
    assert len(more[0]) == 64
    np.testing.assert_array_equal(more[0][:32], few[0])
    np.testing.assert_array_equal(more[1][:32], few[1])


def test_the_error_matches_drawn_points_and_is_least_in_the_best_direction() -> None:
    config = replace(CONFIG, first_points=200_000, separability=2.0)
    inputs, labels = draw_points(config, 0)
    best = config.mean / config.variances
    for direction in (best, config.mean, np.array([1.0, 0.0, 0.0, 0.5])):
        measured = (labels * (inputs @ direction) <= 0).mean()
        assert error(config, direction) == pytest.approx(measured, abs=0.004)
    found = minimize(lambda w: error(config, w), config.mean, tol=1e-12)
    assert error(config, best) == pytest.approx(found.fun, abs=1e-8)


def test_separable_points_give_the_largest_margin_and_others_a_minimum_of_the_loss() -> None:
    far, near = replace(CONFIG, separability=100.0), replace(CONFIG, separability=0.2)
    inputs, labels = draw_points(far, 0)
    direction, _ = trained(far, inputs, labels)
    assert (labels * (inputs @ direction)).min() == pytest.approx(1, abs=1e-8)
    inputs, labels = draw_points(near, 1)
    direction, _ = trained(near, inputs, labels)
    loss, slope = slopes(inputs @ direction, labels, np.ones(1))
    assert np.abs(inputs.T @ slope).max() < 1e-10
    assert loss < np.log(2)


def test_many_overlapping_points_give_the_best_direction() -> None:
    config = replace(CONFIG, law=Erm(), separability=1.0, first_points=32, epochs=7)
    angles = [record.metrics["direction/angle"] for record in finished(config)]
    assert angles[-1] < 4 < angles[0]
