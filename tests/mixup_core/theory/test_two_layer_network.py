from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from mixup_core.laws import Erm, Law, Midpoint
from mixup_core.theory.patch_mixing import PatchCutMix, PatchLinear, PatchOperation
from mixup_core.theory.two_layer import network
from mixup_core.theory.two_layer.config import PatchData, PatchNetwork, TwoLayerConfig
from mixup_core.theory.two_layer.network import Landscape, initial_weights
from mixup_core.theory.two_layer.points import PatchSet, training_points, training_set


def test_initial_weights_have_the_configured_standard_deviation() -> None:
    config = TwoLayerConfig(epochs=1, network=PatchNetwork(neurons=200, init=0.07))
    weights = initial_weights(config)
    assert weights.shape == (6, 1_200, 12)
    assert weights.std() == pytest.approx(0.07 / 6, rel=0.01)
    assert abs(weights.mean()) < 4 * weights.std() / np.sqrt(weights.size)


DIMENSION, CLASSES, NEURONS = 60, 3, 6


def config(law: Law, power: int) -> TwoLayerConfig:
    return TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=CLASSES, points_per_class=8),
        network=PatchNetwork(neurons=2, power=power),
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
    ("law", "operation", "power", "block"),
    [
        (Erm(), PatchLinear(), 2, 1),
        (Midpoint(), PatchLinear(), 3, 2_000),
        (Midpoint(), PatchLinear(), 15, 10**9),
        (Midpoint(), PatchCutMix(), 8, 10**9),
    ],
)
def test_the_reduced_network_trains_like_the_full_network(
    law: Law, operation: PatchOperation, power: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "BLOCK", block)
    run = replace(config(law, power), operation=operation)
    points = training_set(run, training_points(run))
    rng = np.random.default_rng(1)
    features = torch.from_numpy(np.linalg.qr(rng.normal(size=(DIMENSION, 2 * CLASSES)))[0].T.copy())
    # Inputs reach all three branches of the activation.
    full = torch.from_numpy(rng.normal(0, run.rho, (CLASSES, NEURONS, DIMENSION))).requires_grad_()
    start = full.detach().clone()
    explicit, targets = in_full(points, features), torch.from_numpy(points.targets.T.copy())
    assert explicit.shape[1] == run.data.patches == 110

    landscape = Landscape(points, run)
    reduced = (start @ features.T).numpy().copy()
    losses = []
    for _ in range(50):
        loss = full_loss(full, explicit, targets, run.rho, power)
        losses.append(loss.item())
        assert landscape.loss(reduced) == pytest.approx(loss.item(), abs=1e-10)
        (gradient,) = torch.autograd.grad(loss, full)
        with torch.no_grad():
            full -= 0.1 * gradient
        reduced += 0.1 * landscape.downhill(reduced)
    assert losses[-1] < 0.9 * losses[0]
    moved = full.detach() @ features.T
    np.testing.assert_allclose(reduced, moved.numpy(), rtol=0, atol=1e-10)
    # What is orthogonal to the features has not moved.
    apart = torch.eye(DIMENSION, dtype=torch.float64) - features.T @ features
    np.testing.assert_allclose((full.detach() @ apart).numpy(), (start @ apart).numpy(), atol=1e-12)
