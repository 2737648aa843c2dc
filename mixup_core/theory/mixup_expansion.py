"""MIXUP_EXPANSION: mixup of a logistic model as a regulariser, and a bound by the data's rank.

The data are n points of two classes, x = +-(separation, 0, ..., 0) + N(0, I_r), in a space of at
least r dimensions. A linear model depends only on the span of the points, so r coordinates are
enough. With the scores s_i = <w, x_i>, h(s) = log(1 + e^s), labels y in {0, 1} and
v = E[lam (1 - lam)], the mixed loss over all ordered pairs is, to second order in the distance of
the partner,

    L_mix = L + 2 v mean_i (h'(s_i) - y_i) (mean_j s_j - s_i)
              + v / 2 mean_i h''(s_i) mean_j (s_j - s_i)^2 + ...,

where L is the loss of the unmixed points. The second term shrinks the scores, the third their
spread w^T Sigma w, with Sigma the covariance of the points. The set of models
{w: w^T Sigma w <= B^2} has a Rademacher complexity of at most B sqrt(rank(Sigma) / n). The gap
between test and training loss is thus at most twice this value, up to a term that does not depend
on the rank. Runs record the gap and twice this value, as its bound.

Source: Zhang et al. 2021, arXiv:2010.04819, lemma 3.1 and the section on generalisation. This
project chose the sizes of the data. It takes as B^2 the mean squared score of the trained model.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.seeding import stream
from mixup_core.theory.logistic import corrections_of, minimiser, require_pairs_of_nodes, slopes
from mixup_core.theory.synthetic import ArrayProcess, Metrics, metric, synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class MixupExpansionConfig(Checked):
    """Configuration of a logistic model trained with one law of the mixing weight lam.

    The number of points doubles with each record.
    """

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "mixup-expansion"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam of a pair; the loss is the expectation over all pairs and weights."""
    rank: Annotated[int, Range(1, 500)] = 10
    """Rank r of the data: the dimension of the span of the points."""
    separation: NonNegative = 1.0
    """Half the distance between the means of the classes."""
    first_points: Annotated[int, Range(4, 2000)] = 32
    """Number of points n at the first record."""
    decay: Positive = 1e-3
    """Weight decay: decay/2 ||w||^2 is added to the loss."""
    nodes: Annotated[int, Range(2, 1000)] = 8
    """Number of quantiles of lam that represent a random law; even."""
    test_points: Count = 20_000
    """Number of test points, from which the test loss is computed."""
    epochs: Annotated[int, Range(1, 12)] = 5
    """Number of sample sizes: epoch t, counted from 0, draws `first_points` * 2^t points."""
    seed: Seed = 0
    """Seed of the points."""

    def check(self) -> None:
        require_pairs_of_nodes(self)


def expansion(scores: Floats, labels: Floats, lams: Floats) -> tuple[float, float]:
    """Return the terms of first and second order of a linear model's mixed loss, in nats.

    The mixed loss is the logistic loss, averaged over all ordered pairs; it is expanded in the
    distance between a point and the partner that is mixed in.
    """
    ones, away = (labels + 1) / 2, scores.mean() - scores
    spread = away**2 + scores.var()
    chance = special.expit(scores)
    product = float((lams * (1 - lams)).mean())
    first = 2 * product * float(((chance - ones) * away).mean())
    return first, product / 2 * float((chance * (1 - chance) * spread).mean())


def draw_points(
    config: MixupExpansionConfig, points: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw Gaussian points of two classes, (points, r); return them with labels +-1, (points,)."""
    labels = np.where(np.arange(points) % 2, 1.0, -1.0)
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    inputs = rng.normal(size=(points, config.rank))
    inputs[:, 0] += config.separation * labels
    return inputs, labels


def start(config: MixupExpansionConfig) -> ArrayProcess:
    lams, certain = config.law.nodes_of_pairs(config.nodes), np.ones(1)
    rng = stream(config.seed, "test points")
    fresh, fresh_labels = draw_points(config, config.test_points, rng)

    def record(epoch: int) -> Metrics:
        points = config.first_points * 2**epoch
        inputs, labels = draw_points(config, points, stream(config.seed, "training points", epoch))
        weights, left = minimiser(inputs, labels, lams, config.decay)
        scores = inputs @ weights
        plain, mixed = (slopes(scores, labels, each)[0] for each in (certain, lams))
        test = slopes(fresh @ weights, fresh_labels, certain)[0]
        bound = 2 * math.sqrt(float((scores**2).mean()) * min(config.rank, points) / points)
        metrics = {
            "points": float(points),
            "loss/mixed": mixed,
            "loss/plain": plain,
            "loss/test": test,
            "scores/spread": float(scores.std()),
            "gap/measured": test - plain,
            "gap/bound": bound,
            "gap/slack": bound - (test - plain),
            "solver/slope": left,
        }
        if not config.law.mixes:
            return metrics
        added, (first, second) = mixed - plain, expansion(scores, labels, lams)
        if has_mixed_points(config) and added:
            metrics["expansion/share_left"] = abs(added - first - second) / abs(added)
        return metrics | {
            "expansion/added": added,
            "expansion/left_by_first": abs(added - first),
            "expansion/left_by_second": abs(added - first - second),
        }

    return ArrayProcess.of_records(config.epochs, record)


def has_mixed_points(config: MixupExpansionConfig) -> bool:
    """Return whether a quantile of lam mixes points; for Beta(0.001, 0.001), all are 0 or 1."""
    lams = config.law.nodes_of_pairs(config.nodes)
    return bool((lams * (1 - lams) > 0).any())


def lacks(config: MixupExpansionConfig, metric: str, records: int) -> str | None:
    """Return None if a run measures a metric, else what to set."""
    del records
    if not metric.startswith("expansion/"):
        return None
    if not config.law.mixes:
        return "set a law that mixes"
    is_known = metric != "expansion/share_left" or has_mixed_points(config)
    return None if is_known else "no quantile of lam mixes points; set another law, or more nodes"


MIXUP_EXPANSION = synthetic_problem(
    MixupExpansionConfig,
    start,
    title="mixup as a regulariser of a logistic model (Zhang et al. 2021)",
    metrics={
        "loss/test": metric("test NLL", "nats", 0.0),
        "loss/plain": metric("training NLL", "nats", 0.0),
        "loss/mixed": metric("mixed training loss", "nats", 0.0),
        "gap/measured": metric("test NLL minus training NLL", "nats"),
        "gap/bound": metric("upper bound of the gap from the rank", "nats", 0.0),
        "gap/slack": metric("upper bound minus the gap", "nats"),
        "scores/spread": metric("standard deviation of the scores", least=0.0),
        "expansion/added": metric("mixed loss minus loss on the training points", "nats"),
        "expansion/left_by_first": metric("error of the first-order expansion", "nats", 0.0),
        "expansion/left_by_second": metric("error of the second-order expansion", "nats", 0.0),
        "expansion/share_left": metric(
            "relative error of the second-order expansion", "%", 0.0, math.inf
        ),
        "solver/slope": metric("largest gradient component at the solution", least=0.0),
    },
    headline=("loss/test",),
    lacks=lacks,
    axis=Axis(label="training points", unit="doubling", scale="log", metric="points"),
    corrected=corrections_of,
    objectives=("loss/test",),
    unsearchable=("rank", "first_points", "test_points"),
    population=lambda config, _: config.separation,
    beside=("gap/*", "expansion/share_left"),
    curves=(("gap/measured",), ("gap/bound",), ("expansion/share_left",)),
    setting=lambda config, _: f"two Gaussians of rank {config.rank}, a linear model",
)
