"""Solvers of the gradient flow dy/dt = f(y): explicit Runge-Kutta steps, and gradient descent."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.theory.synthetic import Arrays

Velocity = Callable[[Floats], Floats]

MAX_STAGES = 1_000
"""Maximum number of stages of a step; with more stages, rounding errors grow."""
STEPS_PER_RADIUS = 25
"""Number of accepted steps after which the spectral radius of the Jacobian is estimated again."""
MAX_POWER_ITERATIONS = 50


class RungeKuttaStage(NamedTuple):
    """Coefficients mu, nu, a and b of stage j of a Runge-Kutta step of size h for dy/dt = f(y).

        Y_j = (1 - mu - nu) Y_0 + mu Y_{j-1} + nu Y_{j-2} + h (a F_{j-1} + b F_0)

    Y_0 is the state before the step, and F_j = f(Y_j).
    """

    mu: float
    nu: float
    a: float
    b: float


@lru_cache(maxsize=4 * MAX_STAGES)
def stages_of(count: int) -> tuple[float, tuple[RungeKuttaStage, ...]]:
    """Return the coefficients of a Runge-Kutta-Chebyshev step with s stages.

    The step is of second order. Its stability polynomial is a_s + b_s T_s(w0 + w1 z), with
    constants a_s, b_s, w0 and w1, Chebyshev's polynomial T_s and the damping epsilon = 2/13; its
    absolute value is below 1 on the negative axis down to about z = -0.65 (s^2 - 1).

    Source: Sommeijer, Shampine and Verwer 1998, RKC: an explicit solver for parabolic PDEs,
    J. Comput. Appl. Math. 88, 315-326.
    """
    w0 = 1 + 2 / (13 * count**2)
    value, first, second = [1.0, w0], [0.0, 1.0], [0.0, 0.0]  # T_j(w0) and its derivatives
    for _ in range(2, count + 1):
        value.append(2 * w0 * value[-1] - value[-2])
        first.append(2 * value[-2] + 2 * w0 * first[-1] - first[-2])
        second.append(4 * first[-2] + 2 * w0 * second[-1] - second[-2])
    w1 = first[count] / second[count]
    b = [second[j] / first[j] ** 2 for j in range(2, count + 1)]
    b = [b[0], b[0], *b]
    stages = []
    for j in range(2, count + 1):
        a = 2 * b[j] * w1 / b[j - 1]
        mu, nu = 2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2]
        stages.append(RungeKuttaStage(mu, nu, a, b=-(1 - b[j - 1] * value[j - 1]) * a))
    return b[1] * w1, tuple(stages)


def rkc_step(velocity: Velocity, y: Floats, f: Floats, step: float, count: int) -> Floats:
    """Return the state after one Runge-Kutta-Chebyshev step of the ODE dy/dt = velocity(y).

    The step evaluates the velocity `count - 1` times.
    """
    head, stages = stages_of(count)
    before, now = y, y + (head * step) * f
    for mu, nu, a, b in stages:
        after = (1 - mu - nu) * y
        after += mu * now
        after += nu * before
        after += (a * step) * velocity(now)
        after += (b * step) * f
        before, now = now, after
    return now


class RkcSolver:
    """Integrator of an ODE dy/dt = f(y), with steps as long as an error estimate allows.

    The Jacobian of f must have real eigenvalues, as in gradient flows. Its spectral radius is
    estimated by the power method on differences of f, so the Jacobian itself is never computed. The
    number of evaluations of f per step grows with the square root of step size times radius.
    """

    def __init__(self, velocity: Velocity, y: Floats, tolerance: float, scale: float) -> None:
        self.time = 0.0
        self.evaluations = 0
        self.y = y
        self._velocity, self._tolerance, self._scale = velocity, tolerance, scale
        self._f = velocity(y)
        self._direction = self._f
        self._step, self._radius, self._age = 1.0, 0.0, STEPS_PER_RADIUS
        self._last_step, self._last_error = 0.0, 0.0

    def advance(self, until: float) -> None:
        """Integrate the ODE up to exactly the time `until`."""
        was_rejected = False
        while self.time < until:
            if self._age >= STEPS_PER_RADIUS:
                self._estimate_radius()
            longest = 0.65 * (MAX_STAGES**2 - 1) / self._radius
            wanted = min(self._step, longest)
            is_last = self.time + wanted >= until
            step = until - self.time if is_last else wanted
            if self.time + step == self.time:
                raise ArithmeticError(
                    f"the gradient flow cannot be integrated beyond the time {self.time}: the step "
                    f"size {step} is too small to change the time."
                )
            count = max(2, 1 + int(math.sqrt(1 + 1.54 * step * self._radius)))
            after = rkc_step(self._count_and_evaluate, self.y, self._f, step, count)
            f = self._count_and_evaluate(after)
            error = self._error(after, f, step)
            if not error <= 1:
                self._step = step * (max(0.1, 0.8 / math.cbrt(error)) if error < math.inf else 0.1)
                # A rejected step may be unstable: estimate the radius again, unless it is new.
                self._age = STEPS_PER_RADIUS if self._age else 0
                was_rejected = True
                continue
            growth = min(self._growth(step, error), 1.0 if was_rejected else 5.0)
            # The last step is shortened to end at `until`; this must not shorten later steps.
            self._step = max(self._step, step * growth) if is_last else step * growth
            self._last_step, self._last_error = step, error
            self.time = until if is_last else self.time + step
            self.y, self._f = after, f
            self._age += 1
            was_rejected = False

    def state(self) -> Arrays:
        """Return the arrays from which `load` continues: all values that determine later steps."""
        steering = [self.time, self.evaluations, self._step, self._radius, self._age]
        steering += [self._last_step, self._last_error]
        return {"y": self.y, "direction": self._direction, "steering": np.array(steering)}

    def load(self, state: Arrays) -> None:
        """Restore the solver from arrays that `state` returned; it then continues bit for bit."""
        self.y, self._direction = state["y"], state["direction"]
        self.time, evaluations, self._step, self._radius, age = map(float, state["steering"][:5])
        self._last_step, self._last_error = map(float, state["steering"][5:])
        self.evaluations, self._age = int(evaluations), int(age)
        self._f = self._velocity(self.y)

    def _count_and_evaluate(self, y: Floats) -> Floats:
        self.evaluations += 1
        return self._velocity(y)

    def _growth(self, step: float, error: float) -> float:
        """Return the ratio of the next step size to this one, at least 0.1."""
        if not error > 0:
            return math.inf
        factor = 0.8 / math.cbrt(error)
        if self._last_error > 0:
            trend = math.cbrt(self._last_error / error) * step / self._last_step
            factor *= min(1.0, trend)
        return max(0.1, factor)

    def _error(self, after: Floats, f: Floats, step: float) -> float:
        """Return the estimated error of a step, divided by the allowed error."""
        estimate = 0.8 * (self.y - after) + (0.4 * step) * (self._f + f)
        size = self._scale + np.maximum(np.abs(self.y), np.abs(after))
        return float(np.abs(estimate / size).max()) / self._tolerance

    def _estimate_radius(self) -> None:
        """Estimate the spectral radius of the Jacobian, and store the estimate times 1.2."""
        distance = 1e-6 * float(np.linalg.norm(self.y))
        direction, radius = self._direction, 0.0
        for _ in range(MAX_POWER_ITERATIONS):
            length = float(np.linalg.norm(direction))
            if length == 0:
                break
            nudge = (distance / length) * direction
            direction = (self._count_and_evaluate(self.y + nudge) - self._f) / distance
            before, radius = radius, float(np.linalg.norm(direction))
            if abs(radius - before) <= 0.02 * radius:
                break
        if not math.isfinite(radius):
            raise ArithmeticError(
                "the derivatives of the differential equation must be finite, got a spectral "
                f"radius of {radius} of their Jacobian at the time {self.time}."
            )
        self._direction = direction
        self._radius, self._age = max(1.2 * radius, 1e-12), 0


class DescentSolver:
    """Gradient descent y <- y + step f(y), timed like gradient flow: step times iterations."""

    def __init__(self, velocity: Velocity, y: Floats, step: float) -> None:
        self.y = y
        self.evaluations = 0
        self._velocity, self._step = velocity, step

    @property
    def time(self) -> float:
        return self.evaluations * self._step

    def advance(self, until: float) -> None:
        """Continue gradient descent until the flow time is at least `until`."""
        steps = math.ceil(until / self._step)
        for _ in range(self.evaluations, steps):
            self.y = self.y + self._step * self._velocity(self.y)
        self.evaluations = max(steps, self.evaluations)

    def state(self) -> Arrays:
        return {"y": self.y, "steps": np.array(self.evaluations)}

    def load(self, state: Arrays) -> None:
        self.y, self.evaluations = state["y"], int(state["steps"])
