"""SEPARABILITY: the number of points needed to find the best boundary between two Gaussians.

A point of class y = +-1 is x ~ N(y mu, Sigma / kappa), ||mu|| = 1: a larger kappa separates the
classes better. The best linear classifier has the direction Sigma^-1 mu for every kappa; the
minimisers of the logistic loss and of the mixed loss both reach it in the limit of many points.
With n points, plain training has little information about this direction if no point is near the
boundary: the points are then separable, and training converges to the direction of the largest
margin. Mixed points are near the boundary.

Source: Oh & Yun 2023, arXiv:2306.00267 (only the abstract was read): for plain training the number
of points grows exponentially with the separability, and mixup needs far fewer. This project chose
the Gaussians, their sizes, and the angle to the best direction as the measure.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Positive, Range
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.logistic import corrections_of, minimiser, require_pairs_of_nodes
from mixup_core.theory.support_vectors import cosine, max_margin_direction
from mixup_core.theory.synthetic import Metrics, by_record, metric, synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class SeparabilityConfig(Checked):
    """Configuration of a linear classifier trained with one law of the mixing weight lam.

    The number of training points doubles with each record.
    """

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "separability"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair; the loss is the expectation over all pairs and weights."""
    separability: Positive = 4.0
    """Separability kappa: the covariance of each class is Sigma / kappa."""
    dimension: Annotated[int, Range(2)] = 10
    """Dimension of the points, d in the source."""
    condition: Annotated[float, Range(1, math.inf, "[)")] = 16.0
    """Ratio of the largest to the smallest variance of the noise. At 1, the best direction is that
    of the class mean mu.
    """
    first_points: int = 32
    """Number of points n at the first record; greater than the dimension."""
    nodes: Annotated[int, Range(2, 1000)] = 8
    """Number of quantiles of lam that represent a random law; even."""
    epochs: Annotated[int, Range(1, 12)] = 6
    """Number of records of a run; the number of points doubles with each."""
    seed: Seed = 0
    """Seed of the points."""

    def check(self) -> None:
        enough = self.first_points > self.dimension
        require(enough, "first_points > dimension", self, "first_points", "dimension")
        require_pairs_of_nodes(self)

    @property
    def mean(self) -> Floats:
        """Mean mu of the class y = 1, with equal coordinates and length 1: (d,)."""
        return np.full(self.dimension, self.dimension**-0.5)

    @property
    def variances(self) -> Floats:
        """Diagonal of Sigma, where Sigma / kappa is the covariance of each class: (d,).

        The values are evenly spaced in the logarithm, around 1.
        """
        root = math.sqrt(self.condition)
        return np.geomspace(1 / root, root, self.dimension)


def draw_points(config: SeparabilityConfig, epoch: int) -> tuple[Floats, Floats]:
    """Draw n training points in d dimensions, (n, d), and their labels +-1, (n,).

    n doubles with each epoch after the first: the first half are the points of the epoch before.
    """
    parts = []
    for part in range(epoch + 1):
        num = config.first_points * (1 if part == 0 else 2 ** (part - 1))
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
        rng = stream(config.seed, "training points", part)
        labels = np.where(rng.random(num) < 0.5, 1.0, -1.0)
        noise = rng.normal(size=(num, config.dimension))
        scaled = noise * np.sqrt(config.variances / config.separability)
        parts.append((labels[:, None] * config.mean + scaled, labels))
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def error(config: SeparabilityConfig, direction: Floats) -> float:
    """Return the exact test error of the linear classifier with the weights w = `direction`.

    For points N(y mu, Sigma / kappa) of the classes y = +-1, the error is

        Phi(-sqrt(kappa) <w, mu> / sqrt(w^T Sigma w)),

    with Phi the normal distribution function.
    """
    spread = math.sqrt(float((direction**2 * config.variances).sum()) / config.separability)
    return float(special.ndtr(-float(direction @ config.mean) / spread))


def trained(config: SeparabilityConfig, inputs: Floats, labels: Floats) -> tuple[Floats, float]:
    """Return the weights to which training converges, (d,), and the slope of the loss there.

    If the points are separable, the loss of ERM has no minimum, and gradient descent converges to
    the direction of the largest margin (Soudry et al. 2018, arXiv:1710.10345); the slope is then 0.
    """
    if not config.law.mixes:
        margin = max_margin_direction(inputs, labels)
        if margin is not None:
            return margin, 0.0
    return minimiser(inputs, labels, config.law.nodes_of_pairs(config.nodes))


def record(config: SeparabilityConfig, epoch: int) -> Metrics:
    best = config.mean / config.variances
    inputs, labels = draw_points(config, epoch)
    direction, left = trained(config, inputs, labels)
    reached = error(config, direction)
    return {
        "points": float(len(labels)),
        "direction/angle": math.degrees(math.acos(max(cosine(direction, best), -1.0))),
        "test/error": reached,
        "test/excess_error": reached - error(config, best),
        "train/error": float((labels * (inputs @ direction) <= 0).mean()),
        "solver/slope": left,
    }


SEPARABILITY = synthetic_problem(
    SeparabilityConfig,
    by_record(record),
    title="points needed for the optimal boundary of two Gaussians (Oh & Yun 2023)",
    metrics={
        "direction/angle": metric("angle to the optimal direction", "degrees", 0.0, 180.0),
        "test/error": metric("test error", "%"),
        "test/excess_error": metric("test error minus its minimum", "%"),
        "train/error": metric("training error", "%"),
        "solver/slope": metric("largest gradient component at the solution", least=0.0),
    },
    headline=("direction/angle",),
    axis=Axis(label="training points", unit="doubling", scale="log", metric="points"),
    corrected=corrections_of,
    objectives=("direction/angle", "test/error"),
    unsearchable=("separability", "first_points"),
    population=lambda config, _: (config.dimension, config.condition),
    beside=("test/error", "test/excess_error"),
    curves=(("test/excess_error",),),
    setting=lambda config, _: (
        f"two Gaussians in {config.dimension} dimensions, separability {config.separability:g}"
    ),
)
