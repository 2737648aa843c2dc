"""The two-layer network of patches: its points, its reduced network, solvers and training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor
from torch.nn.functional import log_softmax

from mixup_core.arrays import Floats
from mixup_core.config.building import with_values
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.problem import DivergedError
from mixup_core.theory.patch_mixing import PatchCutMix, PatchLinear, PatchMask, PatchOperation
from mixup_core.theory.two_layer import network
from mixup_core.theory.two_layer.config import (
    Descent,
    Integrator,
    PatchData,
    PatchNetwork,
    Rkc,
    TwoLayerConfig,
)
from mixup_core.theory.two_layer.network import Landscape, PatchOutputs, initial_weights
from mixup_core.theory.two_layer.points import (
    PatchSet,
    cut,
    draw_points,
    fresh_points,
    masked,
    mixed,
    training_points,
    training_set,
)
from mixup_core.theory.two_layer.solvers import DescentSolver, RkcSolver, rkc_step
from mixup_core.theory.two_layer.training import (
    correlations,
    feature_accuracy,
    is_linearly_separable,
    is_right,
    start,
)
from tests.mixup_core.theory.processes import assert_resumes_anywhere, finished, last

DATA = PatchData(classes=5, points_per_class=40, signal_patches=2, noise_classes=3)


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
    config = TwoLayerConfig(epochs=1, law=law, data=data)
    points = training_points(config)
    drawn = training_set(config, points)
    noded = training_set(replace(config, nodes=4), points)
    assert noded.targets.shape[1] == 4 * drawn.targets.shape[1]
    assert noded.entropy == pytest.approx(drawn.entropy, rel=0.2)
    first = noded.patches[:, :4]
    np.testing.assert_allclose(first[:, ::-1].sum(axis=1), first.sum(axis=1))
    one = training_set(replace(config, law=Midpoint(), nodes=4), points)
    assert one.targets.shape[1] == drawn.targets.shape[1]


DIMENSION, CLASSES, NEURONS = 60, 3, 6


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
    run = TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=CLASSES, points_per_class=8),
        network=PatchNetwork(neurons=2, power=power),
        law=law,
        operation=operation,
        pairs_per_class=10,
    )
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


RATES = np.array([0.0, 0.1, 1.0, 30.0])


def decay(y: Floats) -> Floats:
    """Return a linear flow with the solution y(t) = y(0) exp(-rates t)."""
    return -RATES * y


def after_steps(num_steps: int, count: int) -> Floats:
    y = np.ones(4)
    for _ in range(num_steps):
        y = rkc_step(decay, y, decay(y), 1.0 / num_steps, count)
    return y


@pytest.mark.parametrize("count", [2, 5, 12])
def test_an_rkc_step_has_second_order_on_a_linear_flow(count: int) -> None:
    exact = np.exp(-RATES)
    steps = 64 * np.array([1, 2, 4])
    errors = np.array([np.abs(after_steps(n, count) - exact).max() for n in steps])
    orders = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(orders, 2, atol=0.15)
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("count", [2, 10, 60, 300])
def test_an_rkc_step_is_stable_up_to_its_stated_limit(count: int) -> None:
    def factor(reach: float) -> float:
        y = np.ones(1)
        return abs(float(rkc_step(lambda y: -reach * y, y, -reach * y, 1.0, count)[0]))

    edge = 0.65 * (count**2 - 1)
    assert all(factor(reach) <= 1 + 1e-12 for reach in np.linspace(0, edge, 101))
    assert factor(1.1 * edge) > 1
    # Damped: what has decayed enough to leave the first order behind stays below 1.
    assert max(factor(reach) for reach in np.linspace(min(4, edge / 2), edge, 101)) < 0.97


def test_the_solver_matches_an_implicit_solver_on_the_network() -> None:
    config = TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=3, points_per_class=10),
        network=PatchNetwork(neurons=1, power=4, init=0.3),
        law=Midpoint(),
        pairs_per_class=10,
    )
    landscape = Landscape(training_set(config, training_points(config)), config)
    first = initial_weights(config)

    def velocity(_: float, y: Floats) -> Floats:
        return landscape.downhill(y.reshape(first.shape)).ravel()

    end = 300.0
    exact = solve_ivp(velocity, (0, end), first.ravel(), method="BDF", rtol=1e-8, atol=1e-10)
    expected = exact.y[:, -1].reshape(first.shape)
    assert np.abs(expected - first).max() > 5 * config.rho
    for tolerance, allowed in ((1e-2, 5e-2), (1e-4, 5e-3), (1e-6, 5e-4)):
        solver = RkcSolver(landscape.downhill, first, tolerance, scale=config.rho)
        solver.advance(end)
        np.testing.assert_allclose(solver.y, expected, rtol=0, atol=allowed)


def test_a_flow_that_diverges_in_finite_time_raises_an_error() -> None:
    solver = RkcSolver(np.square, np.ones(1), 1e-3, scale=1.0)  # y = 1 / (1 - t)
    with pytest.raises(ArithmeticError, match="too small to change the time"):
        solver.advance(2.0)
    assert solver.time == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("step", [0.125, 0.5])
def test_each_step_on_a_linear_flow_multiplies_by_1_minus_step_times_rate(
    step: float, steps: int
) -> None:
    solver = DescentSolver(decay, np.ones(4), step)
    solver.advance(step * steps)
    np.testing.assert_allclose(solver.y, (1 - step * RATES) ** steps, rtol=1e-14, atol=1e-14)
    assert (solver.time, solver.evaluations) == (step * steps, steps)


SMALL = TwoLayerConfig(
    data=PatchData(classes=3, points_per_class=10, test_points_per_class=20),
    network=PatchNetwork(power=6, init=0.1),
    pairs_per_class=15,
    records_per_decade=4,
    epochs=6,
)
"""A run that takes a tenth of a second."""


def test_a_descent_resumed_at_any_epoch_ends_with_the_same_bits() -> None:
    assert_resumes_anywhere(replace(SMALL, law=Beta(alpha=1.0), integrator=Descent(step=2.0)))


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
def test_an_operation_changes_nothing_without_mixing(operation: PatchOperation) -> None:
    run = replace(SMALL, law=Erm(), epochs=2)
    assert last(replace(run, operation=operation)) == last(run)


MEASURED = TwoLayerConfig(
    epochs=1,
    data=PatchData(classes=4, signal_patches=2, test_points_per_class=50),
    network=PatchNetwork(neurons=1),
)


def test_a_tie_between_outputs_counts_as_wrong() -> None:
    outputs = np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert is_right(outputs, np.array([0, 0, 0, 2])).tolist() == [False, False, True, True]


def test_feature_accuracy_matches_setting_the_patches_of_the_other_feature_to_zero() -> None:
    points = fresh_points(MEASURED)
    weights = np.random.default_rng(5).normal(0, 0.3, (4, 4, 8))
    alone, both = feature_accuracy(PatchOutputs(points, MEASURED), points, weights)
    for feature in range(2):
        patches = points.patches.copy()
        for point, y in enumerate(points.labels):
            patches[:-1, point, 2 * y + 1 - feature] = 0
        outputs = PatchOutputs(replace(points, patches=patches), MEASURED)(weights)
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


CORNERS = [[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]]


@pytest.mark.parametrize(
    ("inputs", "labels", "expected"),
    [
        ([[1.0, 0.2], [-1.0, 0.2]], [0, 1], True),
        ([[1.0, 1.0], [2.0, 2.0]], [0, 1], False),  # there is no intercept
        (CORNERS, [0, 1, 2], True),
        ([*CORNERS, [0.25, 0.45]], [0, 1, 2, 2], False),  # between the first two corners
    ],
)
def test_classes_are_separable_only_when_every_margin_is_positive(
    inputs: list[list[float]], labels: list[int], expected: bool
) -> None:
    targets = np.eye(max(labels) + 1)[:, labels]
    points = PatchSet(patches=np.array([inputs]), counts=np.ones((1, len(labels))), targets=targets)
    assert is_linearly_separable(points) == expected
