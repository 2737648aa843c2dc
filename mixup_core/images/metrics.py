"""METRICS: metrics that image training records. PREDICTED: metrics computed from stored logits."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mixup_core.config.catalogue import CatalogueError, cached_until_growth
from mixup_core.config.parts import members
from mixup_core.images.data.sets.corrupted import CORRUPTIONS
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.scores import Scores
from mixup_core.problem import Metric


class _Metrics(Mapping[str, Metric]):
    """Mapping of all metrics by name, including those that plugins declare."""

    def __getitem__(self, name: str) -> Metric:
        return _metrics()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_metrics())

    def __len__(self) -> int:
        return len(_metrics())


METRICS: Mapping[str, Metric] = _Metrics()
"""Metrics of training and evaluation, and those that objectives and probes declare, by name."""

PREDICTED = {
    f"predicted/{scaled}{name}": Metric(
        label=f"test {label}{at}", unit=unit, least=0.0, most=2.0 if name == "brier" else None
    )
    for scaled, at in (("", ""), ("scaled_", " after temperature scaling"))
    for name, label, unit in (
        ("calibration_error", "calibration error", "%"),
        ("brier", "Brier score", ""),
        ("nll", "NLL", "nats"),
    )
    if (scaled, name) != ("", "nll")
} | {
    "predicted/temperature": Metric(
        label="fitted temperature", least=math.exp(-5), most=math.exp(5)
    ),
    **{
        f"predicted/{name}": replace(metric, label=f"{metric.label} from predictions")
        for name in ("accuracy", "balanced_accuracy", "auroc")
        for metric in (Scores.metrics[f"test/{name}"],)
    },
}
"""Metrics computed from the stored logits of the test images after the last epoch. Those with
`scaled_` use a temperature fitted on the validation images.
"""

EXCESS = "train/excess_loss"
"""Training loss minus its infimum over all classifiers, where the infimum is known."""

_MEASURED = {
    **{
        f"{split}/{name}{suffix}": Metric(label=f"{title} {label}{note}", unit=unit, least=0.0)
        for suffix, note in (("", ""), ("_averaged", ", averaged weights"))
        for split, title in (
            ("test", "test"),
            ("val", "validation"),
            ("test_corrupted", "corrupted test"),
            *((f"test_{name}", f"test under {name.replace('_', ' ')}") for name in CORRUPTIONS),
        )
        for name, label, unit in (
            ("error", "error", "%"),
            ("nll", "NLL", "nats"),
            ("calibration_error", "calibration error", "%"),
        )
    },
    "train/loss": Metric(label="training loss", unit="nats", least=0.0),
    EXCESS: Metric(
        label="excess training loss",
        unit="nats",
        note="Excess: training loss minus its lower bound, the entropy of the mixed labels.",
    ),
}


def require_own_metrics(kinds: Iterable[type]) -> None:
    """Check that the objectives and probes of a plugin declare no metric that exists already."""
    declaring = (*members(Objective), *members(Probe))
    for kind in kinds:
        if issubclass(kind, (Objective, Probe)):
            others = [other.metrics for other in declaring if other is not kind]
            taken = set().union(_MEASURED, PREDICTED, *others)
            if shared := sorted(taken & kind.metrics.keys()):
                raise CatalogueError(
                    f"`metrics` of {kind.__name__} declares {', '.join(shared)}, "
                    "which another measurement records; choose another name"
                )


@cached_until_growth
def _metrics() -> Mapping[str, Metric]:
    kinds = (*members(Objective), *members(Probe))
    return _MEASURED | {name: metric for kind in kinds for name, metric in kind.metrics.items()}
