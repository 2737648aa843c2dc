"""SUPPORT_VECTORS: if every point is a support vector, ERM and mixup find the same direction.

The data are n points x ~ N(0, I_d) with alternating labels y = +-1. A linear model f(x) = <w, x> is
trained with the logistic loss, by gradient descent from 0. In few dimensions, the classes must be
moved apart along the first axis so that they can be separated.

Source: Chidambaram et al. 2022, arXiv:2110.07647, section 3: in many dimensions every point is a
support vector, and ERM and mixup both find the direction of the minimum-norm interpolator. This
project chose the sizes of the data, the number of steps and the shift of the classes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats, scipy
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Range
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.logistic import floor, slopes
from mixup_core.theory.synthetic import ArrayProcess, Arrays, Metrics, metric, synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class SupportVectorsConfig(Checked):
    """Configuration of two linear models: one trained on mixed, one on unmixed points."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "support-vectors"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair; the loss is the expectation over all pairs and weights."""
    dimension: Count = 200
    """Dimension of the points, d in the source."""
    points: Annotated[int, Range(2, 500)] = 20
    """Number n of points; even."""
    shift: NonNegative = 0.0
    """Distance by which each point is moved along the first axis, times its label."""
    nodes: Annotated[int, Range(1, 1000)] = 9
    """Number of quantiles of lam that represent a random law."""
    lr: Annotated[float, Range(0, 2, "()")] = 1.0
    """Step of gradient descent times an upper bound of the curvature of all losses."""
    steps_per_epoch: Count = 200
    """Number of steps between two records."""
    epochs: Count = 50
    """Number of records of a run."""
    seed: Seed = 0
    """Seed of the points."""

    def check(self) -> None:
        rule = "points must be even: each class has half of them"
        require(self.points % 2 == 0, rule, self, "points")
        self.law.require_nodes(self)


def draw_points(config: SupportVectorsConfig) -> tuple[Floats, Floats]:
    """Draw the points, (n, d), and return them with their alternating labels +-1, (n,)."""
    labels = np.where(np.arange(config.points) % 2 == 0, 1.0, -1.0)
    shape = config.points, config.dimension
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    inputs = stream(config.seed, "training points").normal(size=shape)
    inputs[:, 0] += config.shift * labels
    return inputs, labels


def support_fraction(inputs: Floats, labels: Floats) -> float:
    """Return the fraction of points i with y_i (K^-1 y)_i > 0; 1 if all are support vectors.

    K is X X^T for the matrix X of the points, (n, d), of full rank (d >= n), and y are the labels.
    If the fraction is 1, the minimum-norm interpolator w = X^T K^-1 y, with y_i <w, x_i> = 1 at
    every point, is the maximum-margin direction.

    Source: Chidambaram et al. 2022, arXiv:2110.07647, section 3, after Muthukumar et al. 2021,
    arXiv:2005.08054.
    """
    return float((labels * np.linalg.solve(inputs @ inputs.T, labels) > 0).mean())


def max_margin_direction(inputs: Floats, labels: Floats) -> Floats | None:
    """Return the maximum-margin direction, (d,); None if the points are not separable.

    The direction is the w of least norm with y_i <w, x_i> >= 1 for all points x_i, labelled y_i =
    +-1. It is found by least distance programming: let Z be the matrix of rows y_i x_i, let u >= 0
    minimise ||Z^T u||^2 + (1 - sum u)^2, and let r = 1 - sum u; then w = Z^T u / r.

    Source: Lawson & Hanson 1974, Solving Least Squares Problems, chapter 23, section 4.
    """
    signed = labels[:, None] * inputs
    system = np.vstack([signed.T, np.ones(len(labels))])
    target = np.zeros(len(system))
    target[-1] = 1
    dual, _ = scipy.optimize.nnls(system, target, maxiter=100 * len(labels))
    residual = 1 - dual.sum()
    if residual <= 1e-10:
        return None
    direction: Floats = signed.T @ dual / residual
    return direction


def cosine(first: Floats, second: Floats) -> float:
    """Return the cosine of the angle between two vectors, at most 1; 0 if one of them is zero."""
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return min(float(first @ second) / lengths, 1.0) if lengths else 0.0


def start(config: SupportVectorsConfig) -> ArrayProcess:
    inputs, labels = draw_points(config)
    margin = max_margin_direction(inputs, labels)
    known: dict[str, float] = {}
    if config.dimension >= config.points:
        known["support/fraction"] = support_fraction(inputs, labels)
    lams, certain = config.law.nodes(config.nodes), np.ones(1)
    lowest = floor(labels, lams)
    curvature = float(np.linalg.eigvalsh(inputs @ inputs.T)[-1]) / (4 * len(labels))
    step = config.lr / curvature

    def advance(epoch: int, state: Arrays) -> Metrics:
        erm, mixed = state["erm"], state["mixed"]
        loss = 0.0
        for _ in range(config.steps_per_epoch):
            _, gradient = slopes(inputs @ erm, labels, certain)
            erm -= step * (inputs.T @ gradient)
            loss, gradient = slopes(inputs @ mixed, labels, lams)
            mixed -= step * (inputs.T @ gradient)
        alike = cosine(erm, mixed)
        metrics = known | {
            "step": float((epoch + 1) * config.steps_per_epoch),
            "direction/angle": math.degrees(math.acos(alike)),
            "direction/cosine": alike,
            "train/error": float((labels * (inputs @ mixed) <= 0).mean()),
            "train/excess_loss": loss - lowest,
        }
        if margin is not None:
            metrics["margin/cosine"] = cosine(mixed, margin)
        return metrics

    state = {"erm": np.zeros(config.dimension), "mixed": np.zeros(config.dimension)}
    return ArrayProcess(epochs=config.epochs, state=state, advance=advance)


def lacks(config: SupportVectorsConfig, metric: str, records: int) -> str | None:
    """Return None if a run measures a metric, else what to set."""
    del records
    is_known = metric != "support/fraction" or config.dimension >= config.points
    return None if is_known else "its formula needs dimension >= points; set a larger dimension"


_MOST_SEEDS = 100
"""Maximum number of seeds whose points are drawn to check that they can be separated."""


def lacks_at(config: SupportVectorsConfig, metric: str, seeds: Sequence[int]) -> str | None:
    """Return a message if the points of a seed have no direction of the largest margin."""
    if metric != "margin/cosine" or config.dimension >= config.points:
        return None
    for seed in seeds[:_MOST_SEEDS]:
        if max_margin_direction(*draw_points(replace(config, seed=seed))) is None:
            return f"the points of seed {seed} are not separable; set a larger dimension or shift"
    return None


SUPPORT_VECTORS = synthetic_problem(
    SupportVectorsConfig,
    start,
    title="directions of ERM and mixup on linear models (Chidambaram et al. 2022, section 3)",
    metrics={
        "direction/cosine": metric("cosine to the direction of ERM", "", -1.0, 1.0, higher=True),
        "direction/angle": metric("angle to the direction of ERM", "degrees", 0.0, 180.0),
        "support/fraction": metric("points that are support vectors", "%", higher=True),
        "margin/cosine": metric(
            "cosine to the maximum-margin direction", "", -1.0, 1.0, higher=True
        ),
        "train/error": metric("training error", "%"),
        "train/excess_loss": metric("excess training loss", "nats"),
    },
    headline=("direction/cosine",),
    axis=Axis(label="gradient steps", unit="record", metric="step"),
    lacks=lacks,
    lacks_at=lacks_at,
    sample_size=lambda config, metric: config.points if metric == "train/error" else None,
    objectives=("direction/angle",),
    population=lambda config, _: (config.points, config.dimension, config.shift),
    beside=("support/fraction", "margin/cosine", "train/error"),
    curves=(("margin/cosine",), ("train/excess_loss",)),
    setting=lambda config, _: f"{config.points} Gaussian points in {config.dimension} dimensions",
)
