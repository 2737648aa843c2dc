"""SPURIOUS_FEATURE: a feature of low variance that mixup prefers and a test set contradicts.

A point of class y = +-1 has a core coordinate N(y m_c, s_c^2) and a spurious one N(y m_s, s^2), far
enough from 0 to tell the classes apart, each alone. A linear model is trained by the logistic loss
with weight decay, mixed or not. At test the spurious coordinate's mean has a sign of its own, half
of the time the wrong one. Mixed labels penalise the variance of the logits, so that mixup turns to
the spurious coordinate as its s falls; plain training prefers the larger margin.

Source: Chidambaram & Ge 2024, arXiv:2402.06855, of which the abstract alone was read: label
smoothing and mixup learn the features of least variance where training with weight decay can learn
others, which makes them more susceptible to spurious correlations of low variance. The two
coordinates, their sizes and the decay are choices of ours.
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
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Positive, Range


@dataclass(frozen=True, kw_only=True, slots=True)
class SpuriousFeatureConfig(Checked):
    """The minimiser of one law's loss, for a spurious sd that halves with each record."""

    problem: ClassVar = "spurious-feature"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair; the loss is its expectation over all pairs."""
    points: Annotated[int, Range(3, 2000)] = 200
    """n of the source."""
    core_mean: Positive = 2.0
    """m_c."""
    core_sd: Positive = 0.5
    """s_c."""
    spurious_mean: Positive = 0.5
    """m_s."""
    first_sd: Positive = 0.4
    """s of the first record."""
    decay: Positive = 1e-3
    """Weight decay: decay/2 ||w||^2 is added to the loss."""
    nodes: Annotated[int, Range(2, 1000)] = 8
    """Number of quantiles that represent a random law; even."""
    epochs: Annotated[int, Range(1, 30)] = 6
    """Records; each halves the spurious sd."""
    seed: Seed = 0
    """Names the points."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If the nodes are not even or do not stand for the law.
        """
        require(self.nodes % 2 == 0, "nodes must be even", self, "nodes")
        self.law.require_nodes(self)

    def spurious_sd_at(self, epoch: int) -> float:
        """Return s of a 0-based record."""
        return self.first_sd * 2.0**-epoch


def errors(config: SpuriousFeatureConfig, sd: float, weights: Floats) -> tuple[float, float, float]:
    """Return the test error with the spurious mean as in training, with either sign, and reversed.

    Phi(-(w_c m_c +- w_s m_s) / sqrt(w_c^2 s_c^2 + w_s^2 s^2)), and the mean of both.

    Args:
        config: The run.
        sd: s.
        weights: Core, then spurious: (2,).
    """
    from scipy.special import ndtr

    core, spurious = float(weights[0]) * config.core_mean, float(weights[1]) * config.spurious_mean
    spread = math.hypot(float(weights[0]) * config.core_sd, float(weights[1]) * sd)
    same, reversed_ = (float(ndtr(-(core + sign * spurious) / spread)) for sign in (1, -1))
    return same, (same + reversed_) / 2, reversed_


def least_variance_share(config: SpuriousFeatureConfig, sd: float) -> float:
    """Return the spurious share of the mean logit of w = Sigma^-1 m, the least variance per margin.

    (m_s / s)^2 / ((m_s / s)^2 + (m_c / s_c)^2): the direction of linear discriminants, which the
    mixed loss has in the limit of many points.
    """
    spurious, core = (config.spurious_mean / sd) ** 2, (config.core_mean / config.core_sd) ** 2
    return spurious / (spurious + core)


def start(config: SpuriousFeatureConfig, data_root: Path | None, device: str) -> ArrayProcess:
    """Return the computation before its first spurious sd."""
    del data_root, device
    rng = stream(config.seed, "training points")
    labels = np.where(rng.random(config.points) < 0.5, 1.0, -1.0)
    labels[:2] = 1.0, -1.0  # neither class is empty
    noise = rng.normal(size=(config.points, 2))
    means = np.array([config.core_mean, config.spurious_mean])
    lams = config.law.nodes_of_pairs(config.nodes)

    def record(epoch: int) -> Mapping[str, float]:
        sd = config.spurious_sd_at(epoch)
        inputs = labels[:, None] * means + noise * np.array([config.core_sd, sd])
        weights, left = minimiser(inputs, labels, lams, config.decay)
        parts = weights * means
        same, either, reversed_ = errors(config, sd, weights)
        return {
            "spurious_sd": sd,
            "test/error": either,
            "test/same_error": same,
            "test/reversed_error": reversed_,
            "weight/spurious": float(parts[1] / parts.sum()),
            "weight/least_variance": least_variance_share(config, sd),
            "train/error": float((labels * (inputs @ weights) <= 0).mean()),
            "solver/slope": left,
        }

    return ArrayProcess.of_records(config.epochs, record)


def setting(config: SpuriousFeatureConfig, metric: str) -> str:
    """Return the data."""
    del metric
    return f"{config.points} points with a core and a spurious coordinate, a linear model"


SPURIOUS_FEATURE = Problem(
    name="spurious-feature",
    title="a spurious feature of low variance (Chidambaram & Ge 2024)",
    config=SpuriousFeatureConfig,
    process="mixup_core.theory.spurious_feature:start",
    metrics={
        "test/error": Metric(label="test error, spurious sign random", unit="%"),
        "test/same_error": Metric(label="test error, spurious sign as in training", unit="%"),
        "test/reversed_error": Metric(label="test error, spurious sign reversed", unit="%"),
        "weight/spurious": Metric(label="share of the logit that is spurious", unit="%"),
        "weight/least_variance": Metric(label="that share at the least variance", unit="%"),
        "train/error": Metric(label="training error", unit="%"),
        "solver/slope": Metric(label="largest slope left"),
        "spurious_sd": Metric(label="sd of the spurious feature"),
    },
    headline=("test/error",),
    beside=("weight/spurious", "test/reversed_error"),
    curves=(("weight/spurious",),),
    objectives=("test/error", "weight/spurious"),
    axis=Axis(label="sd of the spurious feature", unit="halving", scale="log",
              metric="spurious_sd"),
    unsearchable=(
        "points", "core_mean", "core_sd", "spurious_mean", "first_sd",
    ),
    setting=setting,
    population=lambda config: (
        config.points, config.core_mean, config.core_sd, config.spurious_mean,
    ),
)  # fmt: skip
"""The cases in which mixup should do worse than ERM."""
