"""SPURIOUS_FEATURE: a feature of low variance that mixup prefers and that fails at test time.

A point of class y = +-1 has a core coordinate N(y m_c, s_c^2) and a spurious coordinate
N(y m_s, s^2); each alone separates the classes well. A linear model is trained by the logistic loss
with weight decay, with mixup or without. At test time, the sign of the spurious coordinate's mean
is random, so it is wrong half of the time. Mixed labels penalise the variance of the logits, so
mixup relies more on the spurious coordinate as s decreases; plain training prefers the larger
margin.

Source: Chidambaram & Ge 2024, arXiv:2402.06855 (only the abstract was read): label smoothing and
mixup learn the features of least variance where training with weight decay can learn others, which
makes them more susceptible to spurious correlations of low variance. The two coordinates, their
sizes and the decay are choices of this project.
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
from mixup_core.seeding import stream
from mixup_core.theory.logistic import corrections_of, minimiser, require_pairs_of_nodes
from mixup_core.theory.synthetic import Metrics, by_record, metric, synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class SpuriousFeatureConfig(Checked):
    """Configuration of a linear model trained on a core and a spurious coordinate.

    The standard deviation s of the spurious coordinate halves with each record.
    """

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "spurious-feature"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair; the loss is the expectation over all pairs and weights."""
    points: Annotated[int, Range(3, 2000)] = 200
    """Number of training points."""
    core_mean: Positive = 2.0
    """Mean m_c of the core coordinate."""
    core_sd: Positive = 0.5
    """Standard deviation s_c of the core coordinate."""
    spurious_mean: Positive = 0.5
    """Mean m_s of the spurious coordinate."""
    first_sd: Positive = 0.4
    """Standard deviation s of the spurious coordinate at the first record."""
    decay: Positive = 1e-3
    """Weight decay: decay/2 ||w||^2 is added to the loss."""
    nodes: Annotated[int, Range(2, 1000)] = 8
    """Number of quantiles of lam that represent a random law; even."""
    epochs: Annotated[int, Range(1, 30)] = 6
    """Number of records of a run; the standard deviation s halves with each."""
    seed: Seed = 0
    """Seed of the points."""

    def check(self) -> None:
        require_pairs_of_nodes(self)

    def spurious_sd_at(self, epoch: int) -> float:
        """Return the standard deviation s of the spurious coordinate at a record."""
        return self.first_sd * 2.0**-epoch


def errors(config: SpuriousFeatureConfig, sd: float, weights: Floats) -> tuple[float, float, float]:
    """Return three exact test errors: spurious mean as in training, of random sign, and reversed.

    The first and the third error are
    Phi(-(w_c m_c +- w_s m_s) / sqrt(w_c^2 s_c^2 + w_s^2 s^2)), with Phi the normal distribution
    function; the second is the mean of both.
    """
    core, spurious = float(weights[0]) * config.core_mean, float(weights[1]) * config.spurious_mean
    spread = math.hypot(float(weights[0]) * config.core_sd, float(weights[1]) * sd)
    same, reversed_ = (float(special.ndtr(-(core + sign * spurious) / spread)) for sign in (1, -1))
    return same, (same + reversed_) / 2, reversed_


def least_variance_share(config: SpuriousFeatureConfig, sd: float) -> float:
    """Return the spurious coordinate's fraction of the mean logit at weights of least variance.

        (m_s / s)^2 / ((m_s / s)^2 + (m_c / s_c)^2)

    Of all weights with the same mean logit, (m_c / s_c^2, m_s / s^2)
    gives the logit the least variance. This is the direction of linear discriminant analysis, which
    training with the mixed loss reaches in the limit of many points.
    """
    spurious, core = (config.spurious_mean / sd) ** 2, (config.core_mean / config.core_sd) ** 2
    return spurious / (spurious + core)


def record(config: SpuriousFeatureConfig, epoch: int) -> Metrics:
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    rng = stream(config.seed, "training points")
    labels = np.where(rng.random(config.points) < 0.5, 1.0, -1.0)
    labels[:2] = 1.0, -1.0  # so that neither class is empty
    noise = rng.normal(size=(config.points, 2))
    means = np.array([config.core_mean, config.spurious_mean])
    sd = config.spurious_sd_at(epoch)
    inputs = labels[:, None] * means + noise * np.array([config.core_sd, sd])
    lams = config.law.nodes_of_pairs(config.nodes)
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


SPURIOUS_FEATURE = synthetic_problem(
    SpuriousFeatureConfig,
    by_record(record),
    title="a spurious feature of low variance (Chidambaram & Ge 2024)",
    metrics={
        "test/error": metric("test error, spurious sign random", "%"),
        "test/same_error": metric("test error, spurious sign as in training", "%"),
        "test/reversed_error": metric("test error, spurious sign reversed", "%"),
        "weight/spurious": metric(
            "share of the logit from the spurious feature", "%", least=-math.inf, most=math.inf
        ),
        "weight/least_variance": metric(
            "share of the logit from the spurious feature at minimum variance", "%"
        ),
        "train/error": metric("training error", "%"),
        "solver/slope": metric("largest gradient component at the solution", least=0.0),
    },
    headline=("test/error",),
    axis=Axis(
        label="standard deviation of the spurious feature",
        unit="halving",
        scale="log",
        metric="spurious_sd",
    ),
    corrected=corrections_of,
    objectives=("test/error", "weight/spurious"),
    unsearchable=("first_sd",),
    population=lambda config, _: (
        config.points,
        config.core_mean,
        config.core_sd,
        config.spurious_mean,
    ),
    beside=("weight/spurious", "test/reversed_error"),
    curves=(("weight/spurious",),),
    setting=lambda config, _: (
        f"{config.points} points with a core and a spurious coordinate, a linear model"
    ),
)
