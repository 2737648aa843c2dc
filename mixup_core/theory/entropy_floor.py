"""ENTROPY_FLOOR: the lowest possible mixup loss of any network, exact and estimated by sampling."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, ClassVar

import numpy as np

from mixup_core.arrays import Floats, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Range
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.problem import OneRecord, Seed
from mixup_core.seeding import stream
from mixup_core.theory.synthetic import Metrics, by_record, metric, synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class EntropyFloorConfig(Checked):
    """Configuration of an estimate of the lowest mixup loss for a law of the mixing weight lam."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "entropy-floor"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam."""
    classes: Annotated[int, Range(2)] = 10
    """Number of classes, all equally frequent."""
    draws: Annotated[int, Range(2, 10_000_000)] = 100_000
    """Number of mixed pairs drawn for the Monte Carlo estimate."""
    target: Annotated[float, Range(0, 1, "[)")] | None = None
    """Wanted value of the lowest possible loss, in nats. The run records the distance between the
    estimate and this value, for a search of a law; None: no distance.
    """
    epochs: OneRecord = 1
    """Number of records: always one."""
    seed: Seed = 0
    """Seed of the drawn pairs."""


def entropy_floor(law: Law, classes: int) -> float:
    """Return the infimum of the expected mixed cross entropy over all classifiers, in nats.

        inf J_M = P(y != y') h,   h = E[-lam ln lam - (1 - lam) ln(1 - lam)],

    J_M is the mixed cross entropy, and y and y' are the labels of a pair: P(y != y') = (C - 1) / C
    for C equally frequent classes and partners drawn with replacement, and h =
    psi(2 a + 1) - psi(a + 1) for Beta(a, a). A classifier attains the infimum if its softmax for
    each mixed input is the mixed label. Such a classifier exists as long as no two mixed inputs
    with different labels coincide.

    Source: Liu et al. 2023, arXiv:2303.01475, lemma 1, for a = 1: (C - 1) / (2 C). Other a follow
    from E[-2 lam ln lam] over Beta(a, a).
    """
    return (classes - 1) / classes * law.label_entropy()


def sampled_entropies(config: EntropyFloorConfig) -> Floats:
    """Draw label pairs and weights lam; return each mixed label's entropy in nats: (draws,)."""
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    rng = stream(config.seed, "mixing")
    labels = rng.integers(config.classes, size=(2, config.draws))
    lam = weights_of(config.law, config.draws, rng)
    return np.where(labels[0] != labels[1], special.entr(lam) + special.entr(1 - lam), 0.0)


def record(config: EntropyFloorConfig, epoch: int) -> Metrics:
    del epoch
    floor, sampled = entropy_floor(config.law, config.classes), sampled_entropies(config)
    estimate, target = float(sampled.mean()), config.target
    return {
        "floor/exact": floor,
        "floor/estimate": estimate,
        "floor/gap": abs(estimate - floor),
        "floor/standard_error": float(sampled.std(ddof=1) / np.sqrt(config.draws)),
        **({} if target is None else {"floor/distance": abs(estimate - target)}),
    }


ENTROPY_FLOOR = synthetic_problem(
    EntropyFloorConfig,
    by_record(record),
    title="the entropy lower bound of the mixup loss (Liu et al. 2023, lemma 1)",
    metrics={
        "floor/estimate": metric("estimated lower bound of the mixup loss", "nats"),
        "floor/exact": metric("exact lower bound of the mixup loss", "nats", 0.0),
        "floor/gap": metric("distance between estimate and exact value", "nats", 0.0),
        "floor/standard_error": metric("standard error of the estimate", "nats", 0.0),
        "floor/distance": metric("distance between estimate and target", "nats", 0.0),
    },
    headline=("floor/estimate",),
    lacks=lambda config, metric, _: (
        "set target" if metric == "floor/distance" and config.target is None else None
    ),
    objectives=("floor/distance", "floor/estimate"),
    unsearchable=("target",),
    population=lambda config, _: config.classes,
    beside=("*/exact", "*/gap"),
    setting=lambda config, _: (
        f"{config.classes} equally frequent classes, {config.draws} drawn pairs"
    ),
    work=attrgetter("draws"),
    work_unit="draws",
)
