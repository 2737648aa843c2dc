from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from mixup_core.arrays import Floats
from mixup_core.laws import Erm, Law, Midpoint
from mixup_core.theory.patch_mixing import PatchCutMix, PatchLinear, PatchOperation
from mixup_core.theory.two_layer import network
from mixup_core.theory.two_layer.config import (
    PatchData,
    PatchNetwork,
    TwoLayerConfig,
)
from mixup_core.theory.two_layer.network import (
    Landscape,
    PatchOutputs,
    initial_weights,
)
from mixup_core.theory.two_layer.points import PatchSet, training_points, training_set


def activation_slope(inputs: Floats, rho: float, power: int) -> Floats:
    """Return R'(x) = clip(x / rho, 0, 1)^(alpha - 1)."""
    return np.clip(inputs / rho, 0, 1) ** (power - 1)


def activation(inputs: Floats, rho: float, power: int) -> Floats:
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


DIMENSION, CLASSES, NEURONS = 60, 3, 6


def config(law: Law) -> TwoLayerConfig:
    return TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=CLASSES, points_per_class=8),
        network=PatchNetwork(neurons=2, power=4),
        law=law,
        pairs_per_class=10,
    )


def full_loss(weights: Tensor, points: Tensor, targets: Tensor, rho: float, power: int) -> Tensor:
    """Return the loss as the paper defines it: every patch of every point, in d dimensions.

    weights (k, m, d), points (points, P, d), targets (points, k).
    """
    inputs = torch.einsum("yrd,npd->nyrp", weights, points)
    polynomial = inputs**power / (power * rho ** (power - 1))
    linear = inputs - (1 - 1 / power) * rho
    branch = torch.where(inputs < rho, polynomial, linear)
    outputs = torch.where(inputs > 0, branch, torch.zeros(())).sum(dim=(2, 3))
    return -(targets * log_softmax(outputs, dim=1)).sum(dim=1).mean()


def in_full(points: PatchSet, features: Tensor) -> Tensor:
    """Return every patch of every point in d dimensions: (points, P, d)."""
    num_points = points.targets.shape[1]
    every = [
        np.repeat(points.patches[:, n], points.counts[:, n].astype(int), axis=0)
        for n in range(num_points)
    ]
    return torch.from_numpy(np.stack(every)) @ features


@pytest.mark.parametrize(
    ("law", "operation"),
    [(Erm(), PatchLinear()), (Midpoint(), PatchLinear()), (Midpoint(), PatchCutMix())],
    ids=["erm", "midpoint", "cutmix"],
)
def test_the_reduced_network_trains_like_the_full_network(
    law: Law, operation: PatchOperation
) -> None:
    run = replace(config(law), operation=operation)
    points = training_set(run, training_points(run))
    rng = np.random.default_rng(1)
    features = torch.from_numpy(np.linalg.qr(rng.normal(size=(DIMENSION, 2 * CLASSES)))[0].T.copy())
    full = torch.from_numpy(rng.normal(0, 0.1, (CLASSES, NEURONS, DIMENSION))).requires_grad_()
    start = full.detach().clone()
    explicit, targets = in_full(points, features), torch.from_numpy(points.targets.T.copy())
    assert explicit.shape[1] == run.data.patches == 110

    landscape = Landscape(points, run)
    reduced = (start @ features.T).numpy().copy()
    losses = []
    for _ in range(200):
        loss = full_loss(full, explicit, targets, run.rho, 4)
        losses.append(loss.item())
        assert landscape.loss(reduced) == pytest.approx(loss.item(), abs=1e-10)
        (gradient,) = torch.autograd.grad(loss, full)
        with torch.no_grad():
            full -= gradient
        reduced += landscape.downhill(reduced)
    assert losses[-1] < 0.8 * losses[0]
    moved = full.detach() @ features.T
    assert float((moved - start @ features.T).abs().max()) > run.rho
    np.testing.assert_allclose(reduced, moved.numpy(), rtol=0, atol=1e-10)
    # What is orthogonal to the features has not moved.
    apart = torch.eye(DIMENSION, dtype=torch.float64) - features.T @ features
    np.testing.assert_allclose((full.detach() @ apart).numpy(), (start @ apart).numpy(), atol=1e-12)
