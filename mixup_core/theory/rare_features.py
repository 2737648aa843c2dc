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

# Tests freeze the order and number of the random draws in this file: a change changes results.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from mixup_core.arrays import Floats
from mixup_core.config.written_forms import spelled
from mixup_core.contracts import weights_of
from mixup_core.laws import Law
from mixup_core.mixing.masks import draw_kept
from mixup_core.problem import Axis, Metric
from mixup_core.seeding import stream
from mixup_core.theory.array_process import ArrayProcess, Arrays
from mixup_core.theory.operations import PatchCutMix, PatchLinear, PatchMask
from mixup_core.theory.point_mixing import FeatureTeacher, Mixing
from mixup_core.theory.rare_features_config import NUM_FEATURES, RareFeaturesConfig
from mixup_core.theory.synthetic import synthetic_problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Patches:
    """Points made of P patches each; features and Gaussian noise are stored separately."""

    features: Floats
    """Coordinates of each patch along the common features v, u and the rare features v', u',
    (points, P, 4).
    """
    noise: Floats
    """Other coordinates of the patches of Gaussian noise, (all noise patches, d - 4)."""
    places: NDArray[Any]
    """Index of the patch that each row of `noise` belongs to, (all noise patches,). Patches are
    counted point by point.
    """
    labels: NDArray[Any]
    """Classes of the points, (points,): 0 for class 1 and 1 for class 2."""

    def full(self) -> Floats:
        """Return the patches with all coordinates, features and Gaussian noise: (points, P, d)."""
        points, patches, _ = self.features.shape
        whole = np.zeros((points * patches, NUM_FEATURES + self.noise.shape[1]))
        whole[:, :NUM_FEATURES] = self.features.reshape(-1, NUM_FEATURES)
        whole[self.places, NUM_FEATURES:] = self.noise
        return whole.reshape(points, patches, -1)


def draw_patches(
    config: RareFeaturesConfig, rng: np.random.Generator, points: int, rarity: float
) -> Patches:
    """Draw random labelled points made of patches."""
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
    return Patches(features=features, noise=noise, places=places.ravel(), labels=labels)


def draw_mixings(
    config: RareFeaturesConfig, law: Law, rng: np.random.Generator, steps: int
) -> list[Mixing]:
    """Draw a partner and a weight for each point in each step; return one `Mixing` per step.

    The partners of a step are a permutation of the points. The weights are drawn from `law`, and
    the operation of the configuration turns them into the coefficients of a `Mixing`.
    """
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
    return [
        Mixing(own=own[s], partner=partner[s], label=label[s], order=orders[s])
        for s in range(steps)
    ]


def score_gradient(
    scores: Floats,
    labels: NDArray[Any],
    mixing: Mixing,
    teacher: FeatureTeacher | None = None,
) -> tuple[float, Floats]:
    """Return the mean cross entropy of mixed points, in nats, and its gradient.

    The gradient is taken with respect to the scores of the unmixed points.

    The score of a patch x_p at neuron r of class k is <w_{k,r}, x_p>. It is linear in the patch, so
    the score of a mixed patch is the mixed score. The logit of a class is the sum of squared scores
    over patches and neurons of the class.
    """
    from scipy.special import log_softmax, softmax

    points, patches, neurons = scores.shape
    mixed = mixing.mixed(scores)
    logits = (mixed**2).reshape(points, patches, 2, -1).sum(axis=(1, 3))
    target = mixing.targets(labels)
    logs = target * log_softmax(logits, axis=1)
    loss = -float(logs.sum()) / points
    rest = (softmax(logits, axis=1) - target) / points
    if teacher is not None:
        rest *= teacher.kept(mixing, target, -logs.sum(axis=1))[:, None]
    pull = np.repeat(rest, neurons // 2, axis=1)
    back = 2 * mixed * pull[:, None]
    gradient = mixing.own[..., None] * back
    gradient[mixing.order] += mixing.partner[..., None] * back
    return loss, gradient


def start(config: RareFeaturesConfig) -> ArrayProcess:
    data = draw_patches(
        config, stream(config.seed, "training points"), config.points, config.rarity
    )
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

    def advance(epoch: int, state: Arrays) -> Mapping[str, float]:
        steps, law = config.steps_per_epoch, config.law_at(epoch)
        losses = np.empty(steps)
        flat = data.features.reshape(-1, NUM_FEATURES)
        mixings = draw_mixings(config, law, stream(config.seed, "mixing", epoch), steps)
        keep, teacher = config.kept_at(epoch), None
        if keep != "all":
            scale = config.teacher_scale
            teacher = FeatureTeacher(features=data.features, keep=keep, scale=scale)
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


def error(scores: Floats, labels: NDArray[Any]) -> float:
    """Return the fraction of misclassified points."""
    points, patches, _ = scores.shape
    logits = (scores**2).reshape(points, patches, 2, -1).sum(axis=(1, 3))
    return float((logits.argmax(axis=1) != labels).mean())


def of_epoch(config: RareFeaturesConfig, epoch: int) -> Any:
    """Return the settings of an epoch that enter stage keys: law, operation, selection of points.

    Under ERM only the law is returned, since nothing is mixed.
    """
    law, keep = config.law_at(epoch), config.kept_at(epoch)
    found = spelled(law, brief=True)
    if not law.mixes:
        return found
    mixes = [found, spelled(config.operation, brief=True)]
    return mixes if keep == "all" else [*mixes, keep, config.teacher_scale]


def method(config: RareFeaturesConfig) -> str | None:
    """Return the name of a run's method, such as `midpoint`, which decides its colour in figures.

    The result is None unless all points are mixed linearly under one law that defines a method.
    """
    is_plain = config.switch_epoch is None and config.operation == PatchLinear()
    is_plain = is_plain and config.schedule is None and config.keep == "all"
    return config.law.method if is_plain or not config.law.mixes else None


RARE_FEATURES = synthetic_problem(
    RareFeaturesConfig,
    trained_in=__name__,
    title="common and rare features in patches (Zou et al. 2023)",
    metrics={
        "feature/rare": Metric(
            label="squared weight on the rare feature, minimum of both classes",
            is_lower_better=False,
        ),
        "feature/common": Metric(
            label="squared weight on the common feature, minimum of both classes",
            is_lower_better=False,
        ),
        "test/rare_error": Metric(label="test error, rare feature", unit="%"),
        "test/common_error": Metric(label="test error, common feature", unit="%"),
        "train/error": Metric(label="training error", unit="%"),
        "train/loss": Metric(label="mixed training loss", unit="nats", least=0.0),
        "step": Metric(label="gradient steps", least=0.0),
    },
    headline=("feature/rare",),
    axis=Axis(label="gradient steps", unit="record", metric="step"),
    sample_size=lambda config, metric: config.points if metric == "train/error" else None,
    objectives=("test/rare_error", "test/common_error"),
    unsearchable=("points", "dimension", "patches", "rarity", "noise_sd", "noise_features"),
    by_epoch=dict.fromkeys(
        (
            "law",
            "law_after",
            "switch_epoch",
            "schedule",
            "schedule.base",
            "schedule.low",
            "schedule.high",
        ),
        "The law of each record enters instead, with all of its fields.",
    )
    | {"operation": "The operation enters with the law of each record that mixes."}
    | dict.fromkeys(
        ("keep", "warm_up", "teacher_scale"),
        "The rule and the scale of the teacher enter with each record that uses a teacher.",
    ),
    of_epoch=of_epoch,
    population=lambda config: (
        config.points,
        config.dimension,
        config.patches,
        config.rarity,
        config.noise_sd,
        config.noise_features,
        config.noise_scale,
    ),
    beside=("feature/common", "test/rare_error", "test/common_error"),
    curves=(("feature/common",), ("test/rare_error",)),
    setting=lambda config, _: (
        f"{config.points} points of {config.patches} patches, "
        f"{100 * config.rarity:g} % with a rare feature"
    ),
    method=method,
    work=lambda config: int(config.steps_per_epoch),
    work_unit="steps",
)
"""Problem of common and rare features in patches.

A run that stops mixing at some record shares its earlier records with a run that never stops.
"""
