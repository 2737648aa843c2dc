"""TWO_LAYER: the problem of a two-layer network on multi-view data, with its metrics."""

from mixup_core.problem import Axis, Series
from mixup_core.theory.patch_mixing import PatchLinear
from mixup_core.theory.synthetic import metric, synthetic_problem
from mixup_core.theory.two_layer.config import TwoLayerConfig
from mixup_core.theory.two_layer.training import start

# Frozen: each metric name in this file. After a change, stored results are not found or get another
# meaning; tests/golden/test_keys.py fails.
METRICS = {
    "features/both": metric("classes with all features learned", "%", higher=True),
    "features/one": metric("classes with exactly one feature learned", "%"),
    "features/none": metric("classes with no feature learned", "%"),
    "features/missing": metric("features not learned", "%"),
    "features/min_accuracy": metric("smallest accuracy with one feature only", "%", higher=True),
    "features/mean_accuracy": metric("mean accuracy with one feature only", "%", higher=True),
    "train/error": metric("training error", "%"),
    "test/error": metric("test error", "%"),
    "train/loss": metric("training loss", "nats", 0.0),
    "train/excess_loss": metric("excess training loss", "nats"),
    "correlation/stronger": metric(
        "correlation with the stronger feature, mean over classes", higher=True
    ),
    "correlation/weaker": metric(
        "correlation with the weaker feature, mean over classes", higher=True
    ),
    "correlation/min": metric("smallest correlation with a feature over all classes", higher=True),
    "linear/separable": metric("linear separability of the training points (0 or 1)", "", 0.0, 1.0),
    "flow/time": metric("flow time", least=0.0),
    "flow/evaluations": metric("gradient evaluations", least=0.0),
}
"""Metrics of the problem by name. Runs also record two metrics for each class (from 0) and feature
(from 1): `accuracy/class0/feature1`, the accuracy with this feature alone, and
`correlation/class0/feature1` (see `mixup_core.theory.two_layer.training.correlations`).
"""


def method(config: TwoLayerConfig) -> str | None:
    is_plain = config.operation == PatchLinear() or not config.law.mixes
    return config.law.method if is_plain else None


def setting(config: TwoLayerConfig, metric: str) -> str:
    data = config.data
    is_train = metric.startswith(("train/", "linear/"))
    each = data.points_per_class if is_train else data.test_points_per_class
    kind = "training" if is_train else "fresh"
    return (
        f"k = {data.classes}, {each * data.classes} {kind} points, "
        f"flow time {config.time_of(config.epochs - 1):.3g}"
    )


def sample_size(config: TwoLayerConfig, metric: str) -> int | None:
    data = config.data
    sizes = {
        **dict.fromkeys(("features/both", "features/one", "features/none"), data.classes),
        "features/missing": data.span,
        "linear/separable": 1,
        "train/error": data.classes * data.points_per_class,
        "test/error": data.classes * data.test_points_per_class,
    }
    return sizes.get(metric)


TWO_LAYER = synthetic_problem(
    TwoLayerConfig,
    start,
    title="features that a two-layer network learns from multi-view patches",
    metrics=METRICS,
    headline=("features/both",),
    axis=Axis(label="flow time", unit="record", scale="log", metric="flow/time"),
    sample_size=sample_size,
    objectives=("features/missing", "features/one", "features/none", "test/error"),
    reserved={"seed": "cannot be set in a study file; give `seeds`"},
    first={"law": "erm", "epochs": 61, "seed": 0},
    population=lambda config, _: config.data,
    beside=("features/one", "features/none", "train/error", "test/error"),
    curves=(("features/min_accuracy",), ("correlation/weaker",), ("train/excess_loss",)),
    series=(
        Series(head="accuracy", metric=metric("accuracy with one feature only", "%")),
        Series(head="correlation", metric=metric("correlation with a feature")),
    ),
    setting=setting,
    method=method,
    work_unit="records",
)
