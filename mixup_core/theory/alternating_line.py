"""ALTERNATING_LINE: labels that alternate along a line; mixup with a large alpha cannot fit them.

The p points i = 0, 1, ..., p - 1 of the real line have the labels i mod c, with c classes. Take
three points and two classes, mixed with lam = 1/2. At x = 1, the ordered pairs (0, 2) and (2, 0)
have label 0 and the pair (1, 1) has label 1. The classifier with the lowest mixed loss thus gives
label 0 the probability 2/3 at x = 1, and misclassifies this point.

Source: Chidambaram et al. 2022, arXiv:2110.07647, section 2.3 and its public code.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from mixup_core.arrays import Floats, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Positive, Range
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.rules import require
from mixup_core.theory.relu_network import ReluNetwork, trained
from mixup_core.theory.synthetic import ArrayProcess, Metrics, metric, synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class AlternatingLineConfig(Checked):
    """Configuration of a run: a network, points with alternating labels, and the law of lam."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "alternating-line"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam; each step draws one weight for all points."""
    points: Annotated[int, Range(2)] = 3
    """Number of points on the line; each step uses all."""
    classes: Annotated[int, Range(2)] = 2
    """Number of labels that alternate, at most `points`."""
    hidden: Count = 512
    """Number of units of the hidden ReLU layer."""
    lr: Positive = 1e-3
    """Learning rate of Adam."""
    radius: Annotated[float, Range(0, 0.5, "()")] = 0.15
    """Radius around the middle point; `middle/optimal` averages the labels of mixed points within
    it. The default matches the published probabilities at alpha = 1 and 32.
    """
    steps_per_epoch: Count = 50
    """Number of steps between two records."""
    epochs: Count = 100
    """Number of records of a run."""
    seed: Seed = 0
    """Seed of the initial weights, the partners and lam."""

    def check(self) -> None:
        require(self.classes <= self.points, "classes <= points", self, "classes", "points")

    @property
    def middle(self) -> int:
        """Index of the middle point of the line, for example 1 of the points 0, 1, 2."""
        return self.points // 2


def optimal_probability(config: AlternatingLineConfig) -> float:
    """Return the probability of the middle point's label under the optimal classifier.

    The training points are p integers on a line, whose labels alternate. The optimal classifier has
    the lowest loss on mixed points. Its probability of the label y_x at the middle point x is the
    fraction of this label among the labels of all mixed points within r (`config.radius`) of x. The
    sums run over the p^2 ordered pairs of points (i, j), mixed to z = lam i + (1 - lam) j; 1(A) is
    1 if A holds, else 0:

        sum E[(lam 1(y_i = y_x) + (1 - lam) 1(y_j = y_x)) 1(|z - x| <= r)] / sum P(|z - x| <= r)

    For lam ~ Beta(a, a), both sums follow from P(lam <= t) = I_t(a, a) and
    E[lam 1(lam <= t)] = I_t(a + 1, a) / 2, with I the regularised incomplete beta function. For
    midpoint mixing of 0, 1, 2 the result is 1/3 at any radius below 1/2: the optimal classifier
    misclassifies the middle point.

    Source: Chidambaram et al. 2022, arXiv:2110.07647, section 2.3, for midpoint. The radius is an
    addition of this project: under a continuous law, z = x has probability 0 unless i = j = x.
    """
    middle, own, all_labels = config.middle, 0.0, 0.0
    labels = [point % config.classes for point in range(config.points)]
    for i, j in np.ndindex(config.points, config.points):
        if i == j:
            mass = float(i == middle)
            first = mass / 2  # both labels are the point's own
        else:
            ends = sorted((middle + side * config.radius - j) / (i - j) for side in (-1, 1))
            low, high = (min(max(end, 0.0), 1.0) for end in ends)
            mass, first = config.law.moments_within(low, high) if low < high else (0.0, 0.0)
        matches = labels[i] == labels[middle], labels[j] == labels[middle]
        own += first * matches[0] + (mass - first) * matches[1]
        all_labels += mass
    return own / all_labels


def start(config: AlternatingLineConfig) -> ArrayProcess:
    network = ReluNetwork(inputs=1, hidden=config.hidden, classes=config.classes)
    inputs = np.arange(config.points, dtype=np.float64)[:, None]
    labels: Any = np.arange(config.points) % config.classes
    optimum = optimal_probability(config)

    def measured(weights: Floats, loss: float) -> Metrics:
        probabilities = special.softmax(network.logits(weights, inputs), axis=1)
        own = float(probabilities[config.middle, labels[config.middle]])
        return {
            "train/error": float((probabilities.argmax(axis=1) != labels).mean()),
            "train/loss": loss,
            "middle/probability": own,
            "middle/optimal": optimum,
            "middle/tie": abs(own - 0.5),
        }

    return trained(config, network, inputs, labels, measured)


ALTERNATING_LINE = synthetic_problem(
    AlternatingLineConfig,
    start,
    title="labels that alternate along a line (Chidambaram et al. 2022, section 2.3)",
    metrics={
        "train/error": metric("training error", "%"),
        "middle/probability": metric(
            "predicted probability of the middle point's label", "", 0.0, 1.0, higher=True
        ),
        "middle/optimal": metric(
            "share of the middle point's label among labels mixed there", "", 0.0, 1.0, higher=True
        ),
        "middle/tie": metric("distance of the middle point's probability from 1/2", "", 0.0, 0.5),
        "train/loss": metric("mixed training loss", "nats", 0.0),
    },
    headline=("train/error",),
    axis=Axis(label="training steps", unit="record", metric="step"),
    objectives=("middle/tie", "train/error"),
    population=lambda config, _: (config.points, config.classes),
    beside=("middle/probability", "middle/optimal"),
    curves=(("middle/probability",), ("train/loss",)),
    setting=lambda config, _: (
        f"{config.points} points on a line, labels alternating over {config.classes} classes"
    ),
)
"""A search can find the alpha at which the middle point's label changes: `middle/tie` is 0."""
