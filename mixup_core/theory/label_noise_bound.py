"""LABEL_NOISE_BOUND: how often a mixed label is not the label of the mixed input, and lower bounds.

A point x has label 1 with probability f(x) = sigmoid(s sin 2x), x ~ U[-2, 2]. When x is mixed with
x' by lam, the mixed label Y~ is the label of x with probability lam, else the label of x'. The
mixed input X~ = lam x + (1 - lam) x' has a true label Y* of its own. Given x, x' and lam, Y~ is 1
with probability q = lam f(x) + (1 - lam) f(x'). Let q_j be the probability that Y~ is j, f_j(X~)
that of the label j at X~, and TV the total variation distance between the two. Then

    P(Y~ != Y*) >= TV = |f(X~) - q| >= sup_j |f_j(X~) - q_j| / 2,   j = 0, 1.

Source: Liu et al. 2023, arXiv:2303.01475, theorem 1 (label noise of mixup). The bound holds if Y*
is drawn with the probability f(X~), which is the default of this problem, or if f is 0 or 1. If Y*
is the likelier label at X~, as in the source, the bound fails for some pairs. Runs with
`truth: argmax` count these pairs.
"""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, ClassVar, Literal

import numpy as np

from mixup_core.arrays import Floats, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Positive, Range
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.problem import Axis, Seed
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import Metrics, by_record, metric, synthetic_problem

EXTENT = 2.0
"""Half the width of the input distribution: x ~ U[-EXTENT, EXTENT]."""
_SLACK = 1e-12
"""Violations of a bound up to this size count as rounding errors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelNoiseBoundConfig(Checked):
    """Configuration of a run: random pairs, mixed with weights lam of one law.

    The steepness s of the label probability f(x) = sigmoid(s sin 2x) doubles with each record.
    """

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "label-noise-bound"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam."""
    truth: Literal["sampled", "argmax"] = "sampled"
    """True label of the mixed input: `sampled` draws it with the probability f, `argmax` is the
    likelier label.
    """
    first_steepness: Positive = 0.75
    """Steepness s of f at the first record, in f(x) = sigmoid(s sin 2x)."""
    draws: Annotated[int, Range(2, 10_000_000)] = 200_000
    """Number of pairs; all records use the same pairs."""
    epochs: Annotated[int, Range(1, 60)] = 6
    """Number of records of a run; the steepness doubles with each."""
    seed: Seed = 0
    """Seed of the pairs."""


def probability(x: Floats, steepness: float) -> Floats:
    """Return the probability of label 1 at x: f(x) = sigmoid(s sin 2x), s the steepness."""
    values: Floats = special.expit(steepness * np.sin(2 * x))
    return values


def disagreement(own: Floats, mixed: Floats, truth: Literal["sampled", "argmax"]) -> Floats:
    """Return the probability that Y~ is not Y*, which are independent given the pair."""
    if truth == "argmax":
        own = (own >= 0.5).astype(np.float64)
    return own * (1 - mixed) + mixed * (1 - own)


def record(config: LabelNoiseBoundConfig, epoch: int) -> Metrics:
    steepness = config.first_steepness * 2.0**epoch
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    rng = stream(config.seed, "training points")
    first, second = rng.uniform(-EXTENT, EXTENT, size=(2, config.draws))
    chances = rng.random((4, config.draws))
    lam = weights_of(config.law, config.draws, stream(config.seed, "mixing"))
    at_first, at_second = probability(first, steepness), probability(second, steepness)
    own = probability(lam * first + (1 - lam) * second, steepness)
    mixed = lam * at_first + (1 - lam) * at_second
    expected = disagreement(own, mixed, config.truth)
    distance = np.abs(own - mixed)
    label = np.where(chances[0] < lam, chances[1] < at_first, chances[2] < at_second)
    true_label = own >= 0.5 if config.truth == "argmax" else chances[3] < own
    return {
        "steepness": steepness,
        "noise/probability": float(expected.mean()),
        "noise/sampled": float((label != true_label).mean()),
        "bound/distance": float(distance.mean()),
        "bound/half_sup": float(distance.mean()) / 2,
        "bound/failures": float((distance > expected + _SLACK).mean()),
        "bound/half_sup_failures": float((distance / 2 > expected + _SLACK).mean()),
    }


LABEL_NOISE_BOUND = synthetic_problem(
    LabelNoiseBoundConfig,
    by_record(record),
    title="label noise of mixed inputs and its bounds (Liu et al. 2023)",
    metrics={
        "bound/failures": metric("pairs that violate the bound", "%"),
        "bound/half_sup_failures": metric("pairs that violate the bound with factor 1/2", "%"),
        "noise/probability": metric("probability of a wrong mixed label", "%"),
        "noise/sampled": metric("share of wrong mixed labels in the sample", "%"),
        "bound/distance": metric("total variation distance", "%"),
        "bound/half_sup": metric("half of the supremum distance", "%"),
        "steepness": metric("steepness s"),
    },
    headline=("bound/failures",),
    axis=Axis(label="steepness s", unit="doubling", scale="log", metric="steepness"),
    sample_size=lambda config, metric: config.draws if metric.endswith("failures") else None,
    objectives=("noise/probability",),
    unsearchable=("truth", "first_steepness"),
    beside=("noise/probability", "bound/distance"),
    curves=(("noise/probability",), ("bound/distance",)),
    setting=lambda config, _: f"{config.draws} drawn pairs, the mixed input's label {config.truth}",
    method=lambda config: config.law.method if config.truth == "sampled" else None,
    work=attrgetter("draws"),
    work_unit="pairs",
)
