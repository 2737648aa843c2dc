"""DescentSolver: plain gradient descent with a fixed step, on the time axis of the flow."""

import math

import numpy as np

from mixup_core.theory.two_layer.points import Array
from mixup_core.theory.two_layer.rkc import Velocity


class DescentSolver:
    """A state that moves by y <- y + step f(y); its time is the step times the iterations."""

    def __init__(self, velocity: Velocity, y: Array, step: float) -> None:
        """Stand at time 0.

        Args:
            velocity: The direction f, minus the gradient.
            y: The state, any shape.
            step: Step size.
        """
        self.y = y
        self.evaluations = 0
        self._velocity, self._step = velocity, step

    @property
    def time(self) -> float:
        """Step times iterations."""
        return self.evaluations * self._step

    def advance(self, until: float) -> None:
        """Go on to the first whole step at or after a time."""
        steps = math.ceil(until / self._step)
        for _ in range(self.evaluations, steps):
            self.y = self.y + self._step * self._velocity(self.y)
        self.evaluations = max(steps, self.evaluations)

    def to_array(self) -> Array:
        """Return all that decides the next steps, as one vector."""
        return np.concatenate([[self.evaluations], self.y.ravel()])

    def load_array(self, saved: Array) -> None:
        """Take what `to_array` gave.

        Raises:
            ValueError: If it has another length.
        """
        self.y = saved[1:].reshape(self.y.shape)
        self.evaluations = int(saved[0])
