import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mixup_core.arrays import Floats
from mixup_core.laws import Midpoint
from mixup_core.theory.two_layer.config import PatchData, PatchNetwork, TwoLayerConfig
from mixup_core.theory.two_layer.network import Landscape, initial_weights
from mixup_core.theory.two_layer.points import training_points, training_set
from mixup_core.theory.two_layer.solvers import DescentSolver, RkcSolver, rkc_step

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
    config, landscape = small_flow()
    start = initial_weights(config)

    def velocity(_: float, y: Floats) -> Floats:
        return landscape.downhill(y.reshape(start.shape)).ravel()

    end = 300.0
    exact = solve_ivp(velocity, (0, end), start.ravel(), method="BDF", rtol=1e-8, atol=1e-10)
    expected = exact.y[:, -1].reshape(start.shape)
    assert np.abs(expected - start).max() > 5 * config.rho
    for tolerance, allowed in ((1e-2, 5e-2), (1e-4, 5e-3), (1e-6, 5e-4)):
        solver = RkcSolver(landscape.downhill, start, tolerance, scale=config.rho)
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


def small_flow() -> tuple[TwoLayerConfig, Landscape]:
    config = TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=3, points_per_class=10),
        network=PatchNetwork(neurons=1, power=4, init=0.3),
        law=Midpoint(),
        pairs_per_class=10,
    )
    return config, Landscape(training_set(config, training_points(config)), config)
