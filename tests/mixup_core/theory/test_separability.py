from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from mixup_core.laws import BetaAb, Discrete, Erm
from mixup_core.rules import RuleError
from mixup_core.theory.logistic import minimiser, slopes
from mixup_core.theory.separability import SeparabilityConfig, draw_points, error, trained
from tests.mixup_core.theory.processes import finished

CONFIG = SeparabilityConfig(dimension=4, first_points=16, nodes=4, epochs=3)


def test_the_number_of_points_doubles_and_earlier_points_are_kept() -> None:
    few, more = draw_points(CONFIG, 1), draw_points(CONFIG, 2)
    assert len(few[0]) == 32
    assert len(more[0]) == 64
    np.testing.assert_array_equal(more[0][:32], few[0])
    np.testing.assert_array_equal(more[1][:32], few[1])


def test_points_have_the_configured_mean_and_variances() -> None:
    config = replace(CONFIG, first_points=100_000, separability=4.0)
    inputs, labels = draw_points(config, 0)
    signed = labels[:, None] * inputs
    np.testing.assert_allclose(signed.mean(axis=0), config.mean, atol=0.01)
    np.testing.assert_allclose(signed.var(axis=0), config.variances / 4, rtol=0.02)
    assert config.variances[-1] / config.variances[0] == pytest.approx(16)


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


def test_the_minimiser_of_an_asymmetric_law_uses_all_its_nodes() -> None:
    """A pair mixed with 1 - lam is the reversed pair, so symmetric laws need half the nodes."""
    law = BetaAb(a=2.0, b=1.0)
    config = replace(CONFIG, law=law)
    inputs, labels = draw_points(config, 1)
    direction, _ = trained(config, inputs, labels)
    nodes = law.nodes(config.nodes)
    _, slope = slopes(inputs @ direction, labels, nodes)
    assert np.abs(inputs.T @ slope).max() < 1e-10
    other, _ = minimiser(inputs, labels, nodes[nodes >= 0.5])
    assert np.abs(other - direction).max() > 1e-3


def test_a_number_of_nodes_that_does_not_fit_a_discrete_law_is_refused() -> None:
    law = Discrete(values=(0.5, 1.0), shares=(0.7, 0.3))
    with pytest.raises(RuleError, match="multiple of 1/nodes"):
        SeparabilityConfig(law=law)
    assert SeparabilityConfig(law=law, nodes=10).law.nodes(10).tolist() == [0.5] * 7 + [1.0] * 3
