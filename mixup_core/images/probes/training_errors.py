"""Errors of the training images, as they are and by their views."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.images.probes.probe import Probe
from mixup_core.problem import Metric

if TYPE_CHECKING:
    from torch import Tensor

    from mixup_core.images.probes.subject import Subject


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginalError(Probe):
    """Error and mean cross entropy of the training images as they are; single views only."""

    tag: ClassVar = "original-error"
    metrics: ClassVar = {
        "train/error": Metric(label="training error, original images", unit="%"),
        "train/nll": Metric(label="training NLL, original images", unit="nats", least=0.0),
    }
    views: ClassVar = "single"

    def measure(self, subject: "Subject") -> dict[str, float]:
        """Return the values measured after an epoch, by metric name."""
        from torch.nn.functional import cross_entropy

        logits, labels = subject.outputs()
        return {
            "train/error": _error(logits, labels),
            "train/nll": float(cross_entropy(logits.double(), labels)),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiViewError(Probe):
    """Error of the training images as an access shows them, gamma drawn anew.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, for the views; concatenated views only.
    """

    tag: ClassVar = "multi-view-error"
    metrics: ClassVar = {
        "train/multi_view_error": Metric(label="training error, both views", unit="%")
    }
    views: ClassVar = "concat"

    def measure(self, subject: "Subject") -> dict[str, float]:
        """Return the values measured after an epoch, by metric name."""
        return {"train/multi_view_error": _error(*subject.outputs())}


@dataclass(frozen=True, kw_only=True, slots=True)
class SpuriousError(Probe):
    """Error from the view of the paired class alone, [0, x']; low: it is relied on."""

    tag: ClassVar = "spurious-error"
    metrics: ClassVar = {
        "train/spurious_error": Metric(label="training error, spurious view alone", unit="%")
    }
    views: ClassVar = "concat"

    def measure(self, subject: "Subject") -> dict[str, float]:
        """Return the values measured after an epoch, by metric name."""
        return {"train/spurious_error": _error(*subject.outputs(gamma=0.0))}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrueError(Probe):
    """Error from the own view alone, [x, 0]."""

    tag: ClassVar = "true-error"
    metrics: ClassVar = {
        "train/true_error": Metric(label="training error, own view alone", unit="%")
    }
    views: ClassVar = "concat"

    def measure(self, subject: "Subject") -> dict[str, float]:
        """Return the values measured after an epoch, by metric name."""
        return {"train/true_error": _error(*subject.outputs(gamma=1.0))}


def _error(logits: "Tensor", labels: "Tensor") -> float:
    return float((logits.argmax(1) != labels).double().mean())
