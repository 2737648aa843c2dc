"""TWO_LAYER: the problem of a two-layer network on multi-view data, with its metrics."""

from mixup_core.problem import Axis, Metric, Series
from mixup_core.theory.operations import PatchLinear
from mixup_core.theory.synthetic import synthetic_problem
from mixup_core.theory.two_layer.config import TwoLayerConfig

METRICS = {
    "features/both": Metric(
        label="classes with all features learned", unit="%", is_lower_better=False
    ),
    "features/one": Metric(label="classes with exactly one feature learned", unit="%"),
    "features/none": Metric(label="classes with no feature learned", unit="%"),
    "features/missing": Metric(label="features not learned", unit="%"),
    "features/min_accuracy": Metric(
        label="smallest accuracy with one feature only", unit="%", is_lower_better=False
    ),
    "features/mean_accuracy": Metric(
        label="mean accuracy with one feature only", unit="%", is_lower_better=False
    ),
    "train/error": Metric(label="training error", unit="%"),
    "test/error": Metric(label="test error", unit="%"),
    "train/loss": Metric(label="training loss", unit="nats", least=0.0),
    "train/excess_loss": Metric(label="excess training loss", unit="nats"),
    "correlation/stronger": Metric(
        label="correlation with the stronger feature, mean over classes", is_lower_better=False
    ),
    "correlation/weaker": Metric(
        label="correlation with the weaker feature, mean over classes", is_lower_better=False
    ),
    "correlation/min": Metric(
        label="smallest correlation with a feature over all classes", is_lower_better=False
    ),
    "linear/separable": Metric(
        label="linear separability of the training points (0 or 1)", least=0.0, most=1.0
    ),
    "flow/time": Metric(label="flow time", least=0.0),
    "flow/evaluations": Metric(label="gradient evaluations", least=0.0),
}
"""Metrics of the problem by name. Runs also record two metrics for each class (from 0) and feature
(from 1): `accuracy/class0/feature1`, the accuracy with this feature alone, and
`correlation/class0/feature1` (see `mixup_core.theory.two_layer.features.correlations`).
"""


def method(config: TwoLayerConfig) -> str | None:
    """Return the name of a run's method, such as `midpoint`, which decides its colour in figures.

    The result is None if points are not mixed linearly, or the law defines no such method.
    """
    is_plain = config.operation == PatchLinear() or not config.law.mixes
    return config.law.method if is_plain else None


def setting(config: TwoLayerConfig, metric: str) -> str:
    """Return, as text, the data on which a metric is measured, and the last flow time.

    For example: `k = 6, 120 training points, flow time 1e+07`.
    """
    data = config.data
    is_train = metric.startswith(("train/", "linear/"))
    each = data.points_per_class if is_train else data.test_points_per_class
    kind = "training" if is_train else "fresh"
    return (
        f"k = {data.classes}, {each * data.classes} {kind} points, "
        f"flow time {config.time_of(config.epochs - 1):.3g}"
    )


def sample_size(config: TwoLayerConfig, metric: str) -> int | None:
    """Return the number N of examples if a metric is a fraction of N examples, else None.

    The examples are classes, features or points.
    """
    data = config.data
    match metric.split("/"):
        case ["features", "both" | "one" | "none"]:
            return data.classes
        case ["features", "missing"]:
            return data.features * data.classes
        case ["linear", "separable"]:
            return 1
        case ["train", "error"]:
            return data.classes * data.points_per_class
        case ["test", "error"]:
            return data.classes * data.test_points_per_class
        case _:
            return None


TWO_LAYER = synthetic_problem(
    TwoLayerConfig,
    title="features that a two-layer network learns from multi-view patches",
    trained_in="mixup_core.theory.two_layer.training",
    metrics=METRICS,
    headline=("features/both",),
    axis=Axis(label="flow time", unit="record", scale="log", metric="flow/time"),
    sample_size=sample_size,
    objectives=("features/missing", "features/one", "features/none", "test/error"),
    reserved={"seed": "cannot be set in a study file; give `seeds`"},
    first={"law": "erm", "epochs": 61, "seed": 0},
    population=lambda config: config.data,
    beside=("features/one", "features/none", "train/error", "test/error"),
    curves=(("features/min_accuracy",), ("correlation/weaker",), ("train/excess_loss",)),
    series=(
        Series(head="accuracy", metric=Metric(label="accuracy with one feature only", unit="%")),
        Series(head="correlation", metric=Metric(label="correlation with a feature")),
    ),
    setting=setting,
    method=method,
    work_unit="records",
)
"""Problem of two-layer networks on multi-view data (arXiv:2210.13512, theorems 4.6 and 4.7)."""
