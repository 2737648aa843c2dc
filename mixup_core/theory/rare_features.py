"""RARE_FEATURES: patches with a common or a rare feature, which networks learn unequally.

A point of class y in {1, 2} has P patches of d numbers in random order. One patch is a feature of
the class: the common feature (v for y = 1, u for y = 2) with probability 1 - rho, else the rare one
(v' or u'). Another b patches are feature noise: u or v at random, times a factor a. All others are
Gaussian noise of standard deviation sigma, orthogonal to the four features. The network has m
neurons for each class k and the logits F_k(x) = sum_p sum_{r <= m} <w_{k,r}, x_p>^2; it is trained
by full-batch gradient descent on the cross entropy. If n is the number of points and
rho / 2 << sigma^2 d / n << (1 - rho) / 2, plain training learns the common features and then
memorises noise before it learns the rare features; mixup learns the rare features too.

Source: Zou et al. 2023, arXiv:2303.08433, definition 3.1. Its hyperparameters were not available:
this project chose all numbers, exactly b noise patches (not at most b), and the random order.

The mixing operation is a choice: `linear` is mixup; `cutmix` takes each patch from either point;
`mask` drops patches. Sources of the last two (only the abstracts were read): Oh & Yun 2024,
arXiv:2410.23672 (for features of varying rarity, Cutout learns some that plain training misses, and
CutMix learns still rarer ones), and Li et al. 2025, arXiv:2502.08940 (removing features and mixing
features are separate effects; CutMix has both).

A schedule may change the law from record to record. The field `keep` can restrict training to the
mixed points on which the network's loss is above, or below, that of a teacher. Source: slides on
data valuation for mixup, which use images only.
"""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, assert_never

import numpy as np

from mixup_core.arrays import Floats, Ints, special
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range, Share, Whole
from mixup_core.config.written_forms import spelled
from mixup_core.contracts import weights_of
from mixup_core.laws import Erm, Law
from mixup_core.laws.schedules import Easy, EasyHardEasy, Hard, epoch_after
from mixup_core.mixing.masks import draw_kept
from mixup_core.problem import Axis, Seed
from mixup_core.rules import require
from mixup_core.seeding import stream
from mixup_core.theory.patch_mixing import (
    FeatureTeacher,
    Mixing,
    PatchCutMix,
    PatchLinear,
    PatchMask,
    PatchOperation,
)
from mixup_core.theory.synthetic import ArrayProcess, Arrays, Metrics, metric, synthetic_problem

NUM_FEATURES = 4
"""Number of features: v, u (common) and v', u' (rare), the first coordinates of a patch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RareFeaturesConfig(Checked):
    """Configuration of a network trained on points with a common or a rare feature."""

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "rare-features"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam, drawn for each point in each step."""
    switch_epoch: Whole | None = None
    """First record (from 0) trained under `law_after`, at most `epochs`; None: no switch."""
    law_after: Law = field(default_factory=Erm)
    """Law after the switch; unused without a switch."""
    schedule: Easy | Hard | EasyHardEasy | None = None
    """Schedule that changes the law from record to record, instead of `law`; None: no schedule."""
    operation: PatchOperation = field(default_factory=PatchLinear)
    """Operation that mixes two points by the weight lam."""
    keep: Literal["all", "low", "high"] = "all"
    """Mixed points used for training: `low` uses those on which the network's loss is at least the
    teacher's, `high` the others, `all` every point. Gradients are divided by the number of all.
    """
    warm_up: Share = 0.25
    """Fraction of the records, from the first on, in which all points are used."""
    teacher_scale: Positive = 4.0
    """Logit that the teacher gives to the correct class of a point with one feature."""
    points: Annotated[int, Range(2)] = 100
    """Number of points, n in the source."""
    dimension: Annotated[int, Range(NUM_FEATURES, ends="(]")] = 500
    """Number of coordinates of a patch, d in the source."""
    patches: Annotated[int, Range(2)] = 4
    """Number of patches of a point, P in the source."""
    rarity: Share = 0.1
    """Fraction rho of points with a rare feature."""
    noise_sd: Positive = 0.21
    """Standard deviation sigma of the Gaussian noise."""
    noise_features: Whole = 1
    """Number b of patches of feature noise in each point; below `patches`."""
    noise_scale: NonNegative = 0.05
    """Length a of the vector in a patch of feature noise; a feature has the length 1."""
    neurons: Count = 5
    """Number m of neurons of each class."""
    initial_sd: Positive = 0.01
    """Standard deviation of each initial weight."""
    test_points: Count = 1000
    """Number of test points with a common feature, and also of those with a rare feature."""
    lr: Positive = 0.2
    """Step size of gradient descent."""
    steps_per_epoch: Count = 500
    """Number of steps between two records."""
    epochs: Count = 16
    """Number of records of a run."""
    seed: Seed = 0
    """Seed of the points, the initial weights and the mixing."""

    def check(self) -> None:
        switch = self.switch_epoch
        within = switch is None or switch <= self.epochs
        require(within, "switch_epoch <= epochs", self, "switch_epoch", "epochs")
        has_use = switch is not None or not self.law_after.mixes
        require(has_use, "law_after needs a switch_epoch", self, "switch_epoch", "law_after")
        is_one = self.schedule is None or not self.law.mixes
        require(is_one, "law must be left out if schedule is set", self, "schedule", "law")
        fits = self.noise_features < self.patches
        require(fits, "noise_features < patches", self, "noise_features", "patches")

    def law_at(self, epoch: int) -> Law:
        """Return the law of lam in the steps before a record; `epoch` is its number, from 0."""
        if self.switch_epoch is not None and epoch >= self.switch_epoch:
            return self.law_after
        return self.law if self.schedule is None else self.schedule.law_at(epoch, self.epochs)

    def kept_at(self, epoch: int) -> Literal["all", "low", "high"]:
        """Return the mixed points that are trained on before a record: `all`, or `keep`."""
        is_plain = epoch < epoch_after(self.warm_up, self.epochs) or not self.law_at(epoch).mixes
        return "all" if is_plain else self.keep


class Patches(NamedTuple):
    """Points made of P patches each; features and Gaussian noise are stored separately."""

    features: Floats
    """Coordinates of each patch along v, u (common) and v', u' (rare), (points, P, 4)."""
    noise: Floats
    """Other coordinates of the patches of Gaussian noise, (all noise patches, d - 4)."""
    places: Ints
    """Index of each row of `noise` among all patches, counted point by point."""
    labels: Ints
    """Classes of the points, (points,): 0 for class 1 and 1 for class 2."""


def draw_patches(
    config: RareFeaturesConfig, rng: np.random.Generator, points: int, rarity: float
) -> Patches:
    """Draw random labelled points made of patches."""
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/mixup_core/theory/test_first_records.py fails.
    labels = rng.integers(2, size=points)
    is_rare = rng.random(points) < rarity
    order = rng.permuted(np.tile(np.arange(config.patches), (points, 1)), axis=1)
    features = np.zeros((points, config.patches, NUM_FEATURES))
    rows = np.arange(points)
    features[rows, order[:, 0], labels + 2 * is_rare] = 1
    confusing = rng.integers(2, size=(points, config.noise_features))
    for index in range(config.noise_features):
        features[rows, order[:, 1 + index], confusing[:, index]] = config.noise_scale
    places = rows[:, None] * config.patches + order[:, 1 + config.noise_features :]
    noise = rng.normal(0, config.noise_sd, (places.size, config.dimension - NUM_FEATURES))
    return Patches(features, noise, places.ravel(), labels)


def draw_mixings(
    config: RareFeaturesConfig, law: Law, rng: np.random.Generator, steps: int
) -> list[Mixing]:
    """Draw a partner and a weight for each point in each step; return one `Mixing` per step."""
    shape = steps, config.points
    orders = rng.permuted(np.tile(np.arange(config.points), (steps, 1)), axis=1)
    lam = weights_of(law, shape, rng)
    match config.operation:
        case PatchLinear():
            own = np.broadcast_to(lam[..., None], (*shape, config.patches))
            partner, label = 1 - own, lam
        case PatchCutMix():
            own = draw_kept(lam, config.patches, rng).astype(np.float64)
            partner, label = 1 - own, own.mean(axis=2)
        case PatchMask():
            own = draw_kept(lam, config.patches, rng).astype(np.float64)
            partner, label = np.zeros_like(own), np.ones(shape)
        case _:
            assert_never(config.operation)
    return [Mixing(*each) for each in zip(own, partner, label, orders, strict=True)]


def score_gradient(
    scores: Floats, labels: Ints, mixing: Mixing, teacher: FeatureTeacher | None
) -> tuple[float, Floats]:
    """Return the mean cross entropy of mixed points, in nats, and its gradient by unmixed scores.

    The score of a patch x_p at neuron r of class k is <w_{k,r}, x_p>. It is linear in the patch, so
    the score of a mixed patch is the mixed score.
    """
    points, neurons = len(scores), scores.shape[2]
    mixed = mixing.mixed(scores)
    logits = logits_of(mixed)
    target = mixing.targets(labels)
    logs = target * special.log_softmax(logits, axis=1)
    loss = -float(logs.sum()) / points
    rest = (special.softmax(logits, axis=1) - target) / points
    if teacher is not None:
        rest *= teacher.kept(mixing, target, -logs.sum(axis=1))[:, None]
    pull = np.repeat(rest, neurons // 2, axis=1)
    back = 2 * mixed * pull[:, None]
    gradient = mixing.own[..., None] * back
    gradient[mixing.order] += mixing.partner[..., None] * back
    return loss, gradient


def start(config: RareFeaturesConfig) -> ArrayProcess:
    rng = stream(config.seed, "training points")
    data = draw_patches(config, rng, config.points, config.rarity)
    rng = stream(config.seed, "test points")
    tests = {
        name: draw_patches(config, rng, config.test_points, rarity)
        for name, rarity in (("common", 0.0), ("rare", 1.0))
    }
    shape = config.dimension, 2 * config.neurons
    initial = stream(config.seed, "initial weights").normal(0, config.initial_sd, shape)
    first = initial[NUM_FEATURES:]
    inner, at_start = data.noise @ data.noise.T, data.noise @ first
    known = {name: (test.noise @ data.noise.T, test.noise @ first) for name, test in tests.items()}

    def scores(part: Patches, product: Floats, begun: Floats, state: Arrays) -> Floats:
        points, patches, _ = part.features.shape
        found = part.features.reshape(-1, NUM_FEATURES) @ state["features"]
        found[part.places] += begun + product @ state["memory"]
        return found.reshape(points, patches, -1)

    def advance(epoch: int, state: Arrays) -> Metrics:
        steps, law = config.steps_per_epoch, config.law_at(epoch)
        losses = np.empty(steps)
        flat = data.features.reshape(-1, NUM_FEATURES)
        mixings = draw_mixings(config, law, stream(config.seed, "mixing", epoch), steps)
        keep, teacher = config.kept_at(epoch), None
        if keep != "all":
            teacher = FeatureTeacher(data.features, keep, config.teacher_scale)
        for step, mixing in enumerate(mixings):
            now = scores(data, inner, at_start, state)
            losses[step], gradient = score_gradient(now, data.labels, mixing, teacher)
            gradient = config.lr * gradient.reshape(-1, shape[1])
            state["features"] = state["features"] - flat.T @ gradient
            state["memory"] = state["memory"] - gradient[data.places]
        squares = (state["features"] ** 2).reshape(NUM_FEATURES, 2, -1).sum(axis=2)
        metrics = {
            "step": float((epoch + 1) * steps),
            "train/loss": float(losses.mean()),
            "train/error": error(scores(data, inner, at_start, state), data.labels),
            "feature/common": float(min(squares[0, 0], squares[1, 1])),
            "feature/rare": float(min(squares[2, 0], squares[3, 1])),
        }
        for name, part in tests.items():
            metrics[f"test/{name}_error"] = error(scores(part, *known[name], state), part.labels)
        return metrics

    state = {
        "features": initial[:NUM_FEATURES].copy(),
        "memory": np.zeros((len(data.noise), shape[1])),
    }
    return ArrayProcess(epochs=config.epochs, state=state, advance=advance)


def logits_of(scores: Floats) -> Floats:
    """Return the sums of squared scores over patches and neurons of each class: (points, 2)."""
    points, patches, _ = scores.shape
    logits: Floats = (scores**2).reshape(points, patches, 2, -1).sum(axis=(1, 3))
    return logits


def error(scores: Floats, labels: Ints) -> float:
    return float((logits_of(scores).argmax(axis=1) != labels).mean())


# Frozen: what this returns for old configurations, because keys depend on it. After a change,
# stored results are not found; tests/golden/test_keys.py fails.
def of_epoch(config: RareFeaturesConfig, epoch: int) -> Any:
    """Return the settings of an epoch that enter stage keys: law, operation, use of a teacher."""
    law, keep = config.law_at(epoch), config.kept_at(epoch)
    found = spelled(law, brief=True)
    if not law.mixes:
        return found
    mixes = [found, spelled(config.operation, brief=True)]
    return mixes if keep == "all" else [*mixes, keep, config.teacher_scale]


def method(config: RareFeaturesConfig) -> str | None:
    """Return the name of the method if all points are mixed linearly under one law, else None."""
    is_plain = config.switch_epoch is None and config.operation == PatchLinear()
    is_plain = is_plain and config.schedule is None and config.keep == "all"
    return config.law.method if is_plain or not config.law.mixes else None


_LAW = (
    "law", "law_after", "switch_epoch",
    "schedule", "schedule.base", "schedule.low", "schedule.high",
)  # fmt: skip
_DATA = attrgetter(
    "points", "dimension", "patches", "rarity", "noise_sd", "noise_features", "noise_scale"
)

RARE_FEATURES = synthetic_problem(
    RareFeaturesConfig,
    start,
    title="common and rare features in patches (Zou et al. 2023)",
    metrics={
        "feature/rare": metric(
            "squared weight on the rare feature, minimum of both classes", higher=True
        ),
        "feature/common": metric(
            "squared weight on the common feature, minimum of both classes", higher=True
        ),
        "test/rare_error": metric("test error, rare feature", "%"),
        "test/common_error": metric("test error, common feature", "%"),
        "train/error": metric("training error", "%"),
        "train/loss": metric("mixed training loss", "nats", 0.0),
    },
    headline=("feature/rare",),
    axis=Axis(label="gradient steps", unit="record", metric="step"),
    sample_size=lambda config, metric: config.points if metric == "train/error" else None,
    objectives=("test/rare_error", "test/common_error"),
    by_epoch=dict.fromkeys(_LAW, "The law of each record enters instead, with all of its fields.")
    | {"operation": "The operation enters with the law of each record that mixes."}
    | dict.fromkeys(
        ("keep", "warm_up", "teacher_scale"),
        "The rule and the scale of the teacher enter with each record that uses a teacher.",
    ),
    of_epoch=of_epoch,
    population=lambda config, _: _DATA(config),
    beside=("feature/common", "test/rare_error", "test/common_error"),
    curves=(("feature/common",), ("test/rare_error",)),
    setting=lambda config, _: (
        f"{config.points} points of {config.patches} patches, "
        f"{100 * config.rarity:g} % with a rare feature"
    ),
    method=method,
)
