"""TwoLayerTraining: a run of the two-layer network, measured at fixed flow times."""

import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

import numpy as np

from mixup_core.problem import DivergedError, StateError
from mixup_core.records import EpochRecord
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
from mixup_core.theory.two_layer.points import (
    Array,
    fresh_points,
    training_points,
    training_set,
)
from mixup_core.theory.two_layer.rkc import RkcSolver


class TwoLayerTraining:
    """A run under way (`mixup_core.problem.Process`), on a CPU in float64."""

    def __init__(self, config: TwoLayerConfig) -> None:
        """Stand at flow time 0."""
        self.config = config
        self._records: list[EpochRecord] = []
        points = training_points(config)
        mixed = training_set(config, points)
        self._points, self._outputs = points, PatchOutputs(points, config)
        self._fresh = fresh_points(config)
        self._fresh_outputs = PatchOutputs(self._fresh, config)
        self._landscape, self._floor = Landscape(mixed, config), mixed.entropy
        self._is_separable = is_linearly_separable(points)
        self._solver = _solver(config, self._landscape)

    @property
    def records(self) -> list[EpochRecord]:
        """One per flow time reached, the first one first."""
        return self._records

    @property
    def weights(self) -> Array:
        """(k, m, 2 k)."""
        return self._solver.y

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield the record of each flow time that is not there yet, also appended to `records`.

        Raises:
            DivergedError: If a value is not finite, or the flow cannot be followed further.
        """
        for epoch in range(len(self._records), self.config.epochs):
            try:
                self._solver.advance(self.config.time_of(epoch))
            except ArithmeticError as error:
                raise DivergedError(str(error), epoch) from error
            metrics = self._measured()
            if not all(map(math.isfinite, metrics.values())):
                raise DivergedError(
                    f"`metrics are finite` must hold, got ({epoch=}, {metrics}).", epoch
                )
            record = EpochRecord(epoch=epoch, metrics=metrics)
            self._records.append(record)
            yield record

    def to_bytes(self) -> bytes:
        """Return weights and what the solver steers by: one vector in NumPy's format."""
        buffer = io.BytesIO()
        np.save(buffer, self._solver.to_array(), allow_pickle=False)
        return buffer.getvalue()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Take the state that `to_bytes` wrote and the records that belong to it.

        Raises:
            StateError: If the bytes are no state of this run.
        """
        expected = self._solver.to_array()
        try:
            saved = np.load(io.BytesIO(content), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise StateError(
                "`a state is one vector in NumPy's format` must hold, "
                f"got ({len(content)} bytes: {type(error).__name__})."
            ) from error
        if saved.dtype != expected.dtype or saved.shape != expected.shape:
            raise StateError(
                "`a state has the numbers of its run` must hold, "
                f"got ({saved.dtype=!s}, {saved.shape=}, {expected.shape=})."
            )
        self._solver.load_array(saved)
        self._records = list(records)

    def _measured(self) -> Mapping[str, float]:
        config, weights, solver = self.config, self._solver.y, self._solver
        alone, both = feature_accuracy(self._fresh_outputs, self._fresh, weights)
        learned = alone >= LEARNED_ACCURACY
        num_learned = learned.sum(axis=1)
        correlated = correlations(weights, config.rho / config.data.delta1)
        right = is_right(self._outputs(weights), self._points.labels)
        loss = self._landscape.loss(weights)
        metrics = {
            "features/both": np.mean(num_learned == 2),
            "features/one": np.mean(num_learned == 1),
            "features/none": np.mean(num_learned == 0),
            "features/missing": np.mean(~learned),
            "features/min_accuracy": alone.min(),
            "features/mean_accuracy": alone.mean(),
            "train/error": np.mean(~right),
            "test/error": 1 - both.mean(),
            "train/loss": loss,
            "train/excess_loss": loss - self._floor,
            "correlation/stronger": correlated.max(axis=1).mean(),
            "correlation/weaker": correlated.min(axis=1).mean(),
            "correlation/min": correlated.min(),
            "linear/separable": self._is_separable,
            "flow/time": solver.time,
            "flow/evaluations": solver.evaluations,
        }
        for y in range(config.classes):
            for feature in range(2):
                place = f"class{y}/feature{feature + 1}"
                metrics[f"accuracy/{place}"] = alone[y, feature]
                metrics[f"correlation/{place}"] = correlated[y, feature]
        return {name: float(value) for name, value in metrics.items()}


def start(config: TwoLayerConfig, data_root: Path | None, device: str) -> TwoLayerTraining:  # noqa: ARG001  it reads no data and runs on a CPU
    """Return a run before its first record."""
    return TwoLayerTraining(config)


def _solver(config: TwoLayerConfig, landscape: Landscape) -> RkcSolver | DescentSolver:
    weights = initial_weights(config)
    match config.integrator:
        case Rkc(tolerance=tolerance):
            return RkcSolver(landscape.downhill, weights, tolerance, scale=config.rho)
        case Descent(step=step):
            return DescentSolver(landscape.downhill, weights, step)
        case _:
            assert_never(config.integrator)
