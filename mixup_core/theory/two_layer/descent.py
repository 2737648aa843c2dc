"""DescentSolver: plain gradient descent with a fixed step size, timed like a gradient flow."""

import math

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.theory.array_process import Arrays
from mixup_core.theory.two_layer.rkc import Velocity


class DescentSolver:
    """Gradient descent y <- y + step f(y), where f is minus the gradient, timed like gradient flow.

    The flow time is the step size times the number of iterations.
    """

    def __init__(self, velocity: Velocity, y: Floats, step: float) -> None:
        self.y = y
        self.evaluations = 0
        self._velocity, self._step = velocity, step

    @property
    def time(self) -> float:
        """Flow time reached so far: the step size times the number of iterations."""
        return self.evaluations * self._step

    def advance(self, until: float) -> None:
        """Continue gradient descent until the flow time is at least `until`."""
        steps = math.ceil(until / self._step)
        for _ in range(self.evaluations, steps):
            self.y = self.y + self._step * self._velocity(self.y)
        self.evaluations = max(steps, self.evaluations)

    def state(self) -> Arrays:
        """Return the arrays from which `load` continues: the weights and the number of steps."""
        return {"y": self.y, "steps": np.array(self.evaluations)}

    def load(self, state: Arrays) -> None:
        """Restore the weights and the number of steps from arrays that `state` returned."""
        self.y, self.evaluations = state["y"], int(state["steps"])
