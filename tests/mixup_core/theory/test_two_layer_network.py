import numpy as np
import pytest

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer import network
from mixup_core.theory.two_layer.config import PatchData, PatchNetwork, TwoLayerConfig
from mixup_core.theory.two_layer.network import (
    PatchOutputs,
    activation,
    initial_weights,
)
from mixup_core.theory.two_layer.points import training_points


def activation_slope(inputs: Floats, rho: float, power: int) -> Floats:
    """Return R'(x) = clip(x / rho, 0, 1)^(alpha - 1)."""
    return np.clip(inputs / rho, 0, 1) ** (power - 1)


def written_out(inputs: Floats, rho: float, power: int) -> Floats:
    """Return the activation by its three branches, as the paper prints them."""
    return np.piecewise(
        inputs,
        [inputs <= 0, (inputs > 0) & (inputs < rho), inputs >= rho],
        [
            0.0,
            lambda x: x**power / (power * rho ** (power - 1)),
            lambda x: x - (1 - 1 / power) * rho,
        ],
    )


@pytest.mark.parametrize("power", [2, 3, 8, 10])
def test_the_activation_has_its_three_branches(power: int) -> None:
    inputs = np.linspace(-1, 1, 401)
    got = activation(inputs, 0.25, power)
    np.testing.assert_allclose(got, written_out(inputs, 0.25, power), atol=1e-15)


@pytest.mark.parametrize("power", [2, 3, 8, 15])
@pytest.mark.parametrize("block", [1, 2_000, 10**9])
def test_outputs_and_slopes_match_the_sums_of_the_definition(
    power: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "BLOCK", block)
    config = TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=3, points_per_class=7, signal_patches=2),
        network=PatchNetwork(neurons=4, power=power),
    )
    points = training_points(config)
    weights = np.random.default_rng(power).normal(0, config.rho, (3, 12, 6))  # all three branches
    inputs = np.einsum("yrc,pnc->yrpn", weights, points.patches)

    outputs = PatchOutputs(points, config)
    slopes = np.empty((3, 12, 5 * 21))
    by_patch = outputs.by_patch(weights, slopes)
    expected = activation(inputs, config.rho, power)
    np.testing.assert_allclose(by_patch, expected.sum(axis=1), rtol=1e-12, atol=1e-14)
    assert by_patch.max() > config.rho
    expected_slopes = activation_slope(inputs, config.rho, power)
    np.testing.assert_allclose(slopes.reshape(inputs.shape), expected_slopes, atol=1e-12)
    # 108 equal patches of noise count as often as they stand in the point.
    everything = np.einsum("yrpn,p->yn", expected, [1, 1, 1, 1, 108])
    np.testing.assert_allclose(outputs(weights), everything, rtol=1e-12)


def test_initial_weights_have_the_configured_standard_deviation() -> None:
    config = TwoLayerConfig(epochs=1, network=PatchNetwork(neurons=200, init=0.07))
    weights = initial_weights(config)
    assert weights.shape == (6, 1_200, 12)
    assert weights.std() == pytest.approx(0.07 / 6, rel=0.01)
    assert abs(weights.mean()) < 4 * weights.std() / np.sqrt(weights.size)
