"""SEPARABILITY: how many points it takes to find the best boundary between two Gaussians.

A point of class y = +-1 is x ~ N(y mu, Sigma / kappa), ||mu|| = 1: the larger kappa, the further
the classes are apart. The best linear classifier has the direction Sigma^-1 mu at every kappa, and
both the logistic loss and the mixed one have it in the limit of many points. From n points, plain
training sees little of it once no point lies near the boundary: in the end the points are
separable, and its direction is that of the largest margin. Mixed points lie near the boundary.

Source: Oh & Yun 2023, arXiv:2306.00267, of which the abstract alone was read: for plain training
the number of points grows exponentially with the separability, and mixup takes many fewer. The
Gaussians, their sizes and the angle as the measure are choices of ours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Metric, Problem, Seed
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.array_process import ArrayProcess
from mixup_core.theory.logistic import minimiser
from mixup_core.theory.support_vectors import max_margin_direction
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Positive, Range


@dataclass(frozen=True, kw_only=True, slots=True)
class SeparabilityConfig(Checked):
    """The minimiser of one law's loss, from a number of points that doubles with each record."""

    problem: ClassVar = "separability"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair; the loss is its expectation over all pairs."""
    separability: Positive = 4.0
    """kappa."""
    dimension: Annotated[int, Range(2)] = 10
    """d of the source."""
    condition: Annotated[float, Range(1, math.inf, "[)")] = 16.0
    """Greatest by least variance of the noise; at 1 mu is the best direction and the mean of the
    points would do."""
    first_points: int = 32
    """n of the first record, above the dimension."""
    nodes: Annotated[int, Range(2, 1000)] = 8
    """Number of quantiles that represent a random law; even."""
    epochs: Annotated[int, Range(1, 12)] = 6
    """Records; each doubles the points."""
    seed: Seed = 0
    """Names the points."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If the first points are too few, or the nodes do not stand for the law.
        """
        enough = self.first_points > self.dimension
        require(enough, "first_points > dimension", self, "first_points", "dimension")
        require(self.nodes % 2 == 0, "nodes must be even", self, "nodes")
        self.law.require_nodes(self)

    @property
    def mean(self) -> Floats:
        """mu, all coordinates alike: (d,)."""
        return np.full(self.dimension, self.dimension**-0.5)

    @property
    def variances(self) -> Floats:
        """The diagonal of Sigma, evenly in its logarithm around 1: (d,)."""
        root = math.sqrt(self.condition)
        return np.geomspace(1 / root, root, self.dimension)


def draw_points(config: SeparabilityConfig, epoch: int) -> tuple[Floats, Floats]:
    """Return the points (n, d) of a record and their labels +-1 (n,): the last record's and more.

    The first half of them is that of the record before.
    """
    parts = []
    for part in range(epoch + 1):
        num = config.first_points * (1 if part == 0 else 2 ** (part - 1))
        rng = stream(config.seed, "training points", part)
        labels = np.where(rng.random(num) < 0.5, 1.0, -1.0)
        noise = rng.normal(size=(num, config.dimension))
        scaled = noise * np.sqrt(config.variances / config.separability)
        parts.append((labels[:, None] * config.mean + scaled, labels))
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def error(config: SeparabilityConfig, direction: Floats) -> float:
    """Return the test error of a direction: Phi(-sqrt(kappa) <w, mu> / sqrt(w^T Sigma w))."""
    from scipy.special import ndtr

    spread = math.sqrt(float((direction**2 * config.variances).sum()) / config.separability)
    return float(ndtr(-float(direction @ config.mean) / spread))


def trained(config: SeparabilityConfig, inputs: Floats, labels: Floats) -> tuple[Floats, float]:
    """Return the direction that training ends at, (d,), and the largest slope left of its loss.

    Where ERM's points are separable its loss has no minimum: gradient descent tends to the
    direction of the largest margin (Soudry et al. 2018, arXiv:1710.10345).
    """
    if not config.law.mixes:
        margin = max_margin_direction(inputs, labels)
        if margin is not None:
            return margin, 0.0
    return minimiser(inputs, labels, config.law.nodes_of_pairs(config.nodes))


def start(config: SeparabilityConfig, data_root: Path | None, device: str) -> ArrayProcess:
    """Return the computation before its first number of points."""
    del data_root, device
    best = config.mean / config.variances
    least = error(config, best)

    def record(epoch: int) -> Mapping[str, float]:
        inputs, labels = draw_points(config, epoch)
        direction, left = trained(config, inputs, labels)
        product = float(direction @ best)
        cosine = product / float(np.linalg.norm(direction) * np.linalg.norm(best))
        reached = error(config, direction)
        return {
            "points": float(len(labels)),
            "direction/angle": math.degrees(math.acos(min(max(cosine, -1.0), 1.0))),
            "test/error": reached,
            "test/excess_error": reached - least,
            "train/error": float((labels * (inputs @ direction) <= 0).mean()),
            "solver/slope": left,
        }

    return ArrayProcess.of_records(config.epochs, record)


def setting(config: SeparabilityConfig, metric: str) -> str:
    """Return the data."""
    del metric
    return f"two Gaussians in {config.dimension} dimensions, separability {config.separability:g}"


SEPARABILITY = Problem(
    name="separability",
    title="points needed for the best boundary of two Gaussians (Oh & Yun 2023)",
    config=SeparabilityConfig,
    process="mixup_core.theory.separability:start",
    metrics={
        "direction/angle": Metric(
            label="angle to the best direction", unit="degrees", least=0.0, most=180.0
        ),
        "test/error": Metric(label="test error", unit="%"),
        "test/excess_error": Metric(label="test error above the least", unit="%"),
        "train/error": Metric(label="training error", unit="%"),
        "solver/slope": Metric(label="largest slope left", least=0.0),
        "points": Metric(label="training points", least=0.0),
    },
    headline=("direction/angle",),
    beside=("test/error", "test/excess_error"),
    curves=(("test/excess_error",),),
    objectives=("direction/angle", "test/error"),
    axis=Axis(label="training points", unit="doubling", scale="log", metric="points"),
    unsearchable=("separability", "dimension", "condition", "first_points"),
    setting=setting,
    population=lambda config: (config.dimension, config.condition),
)
"""Angles compare across separabilities: the best direction is one and the same."""
