"""TwoLayerTraining: trains a two-layer network and measures it at fixed flow times."""

from collections.abc import Mapping
from typing import assert_never

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.problem import DivergedError
from mixup_core.theory.array_process import ArrayProcess, Arrays
from mixup_core.theory.two_layer.config import Descent, Rkc, TwoLayerConfig
from mixup_core.theory.two_layer.descent import DescentSolver
from mixup_core.theory.two_layer.features import (
    LEARNED_ACCURACY,
    correlations,
    feature_accuracy,
    is_right,
)
from mixup_core.theory.two_layer.landscape import Landscape
from mixup_core.theory.two_layer.linear_models import is_linearly_separable
from mixup_core.theory.two_layer.network import PatchOutputs, initial_weights
from mixup_core.theory.two_layer.points import fresh_points, training_points, training_set
from mixup_core.theory.two_layer.rkc import RkcSolver


class TwoLayerTraining:
    """Training of one two-layer network: the points, the loss, and the solver of its weights."""

    def __init__(self, config: TwoLayerConfig) -> None:
        self.config = config
        self._points, self._fresh = training_points(config), fresh_points(config)
        self._outputs = PatchOutputs(self._points, config)
        self._fresh_outputs = PatchOutputs(self._fresh, config)
        trained = training_set(config, self._points)
        self._landscape, self._floor = Landscape(trained, config), trained.entropy
        self._is_separable = is_linearly_separable(self._points)
        self.solver = _solver(config, self._landscape)

    def advance(self, epoch: int, state: Arrays) -> Mapping[str, float]:
        """Train from a state up to the flow time of a record; return the metrics at that time."""
        self.solver.load(state)
        try:
            self.solver.advance(self.config.time_of(epoch))
        except ArithmeticError as error:
            raise DivergedError(str(error), epoch) from error
        state.update(self.solver.state())
        return self.metrics(self.solver.y) | {
            "flow/time": self.solver.time,
            "flow/evaluations": float(self.solver.evaluations),
        }

    def metrics(self, weights: Floats) -> dict[str, float]:
        """Return the metrics of a network with the weights (k classes, m neurons, L k features)."""
        config = self.config
        alone, together = feature_accuracy(self._fresh_outputs, self._fresh, weights)
        learned = alone >= LEARNED_ACCURACY
        num_learned = learned.sum(axis=1)
        correlated = correlations(weights, config.rho / config.data.delta1)
        right = is_right(self._outputs(weights), self._points.labels)
        loss = self._landscape.loss(weights)
        metrics = {
            "features/both": np.mean(num_learned == config.data.features),
            "features/one": np.mean(num_learned == 1),
            "features/none": np.mean(num_learned == 0),
            "features/missing": np.mean(~learned),
            "features/min_accuracy": alone.min(),
            "features/mean_accuracy": alone.mean(),
            "train/error": np.mean(~right),
            "test/error": 1 - together.mean(),
            "train/loss": loss,
            "train/excess_loss": loss - self._floor,
            "correlation/stronger": correlated.max(axis=1).mean(),
            "correlation/weaker": correlated.min(axis=1).mean(),
            "correlation/min": correlated.min(),
            "linear/separable": self._is_separable,
        }
        for y in range(config.classes):
            for feature in range(config.data.features):
                place = f"class{y}/feature{feature + 1}"
                metrics[f"accuracy/{place}"] = alone[y, feature]
                metrics[f"correlation/{place}"] = correlated[y, feature]
        return {name: float(value) for name, value in metrics.items()}


def start(config: TwoLayerConfig) -> ArrayProcess:
    training = TwoLayerTraining(config)
    return ArrayProcess(
        epochs=config.epochs, state=training.solver.state(), advance=training.advance
    )


def _solver(config: TwoLayerConfig, landscape: Landscape) -> RkcSolver | DescentSolver:
    weights = initial_weights(config)
    match config.integrator:
        case Rkc(tolerance=tolerance):
            return RkcSolver(landscape.downhill, weights, tolerance, scale=config.rho)
        case Descent(step=step):
            return DescentSolver(landscape.downhill, weights, step)
        case _:
            assert_never(config.integrator)
