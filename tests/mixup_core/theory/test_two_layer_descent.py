"""DescentSolver: its iterates in closed form, its time axis, and its limit, the gradient flow."""

import numpy as np
import pytest

from mixup_core.arrays import Floats
from mixup_core.theory.two_layer.descent import DescentSolver
from mixup_core.theory.two_layer.network import initial_weights
from mixup_core.theory.two_layer.rkc import RkcSolver
from tests.mixup_core.theory.small_flow import small_flow

RATES = np.array([[0.0, 0.25, 1.0], [2.0, 3.0, 4.0]])


def decay(y: Floats) -> Floats:
    return -RATES * y


def descent(step: float = 0.5) -> DescentSolver:
    return DescentSolver(decay, np.ones((2, 3)), step)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("step", [0.125, 0.5])
def test_each_step_on_a_linear_flow_multiplies_by_1_minus_step_times_rate(
    step: float, steps: int
) -> None:
    solver = descent(step)
    solver.advance(step * steps)
    np.testing.assert_allclose(solver.y, (1 - step * RATES) ** steps, rtol=1e-14, atol=1e-14)
    assert (solver.time, solver.evaluations) == (step * steps, steps)


def test_advance_stops_at_the_first_whole_step_at_or_after_the_end() -> None:
    solver = DescentSolver(lambda y: -y, np.ones(1), 0.5)
    for end, time in ((1.0, 1.0), (1.2, 1.5), (1.3, 1.5), (2.0, 2.0)):
        solver.advance(end)
        assert solver.time == time
    assert solver.y[0] == 0.5**4


def test_gradient_descent_converges_to_the_flow_as_its_step_shrinks() -> None:
    config, landscape = small_flow()
    start = initial_weights(config)
    flow = RkcSolver(landscape.downhill, start, 1e-6, scale=config.rho)
    flow.advance(64.0)
    errors = []
    for step in (0.5, 0.25, 0.125):
        solver = DescentSolver(landscape.downhill, start, step)
        solver.advance(64.0)
        assert solver.time == 64.0
        assert solver.evaluations == 64 / step
        errors.append(np.abs(solver.y - flow.y).max())
    np.testing.assert_allclose(np.log2(errors[:-1]) - np.log2(errors[1:]), 1, atol=0.2)
