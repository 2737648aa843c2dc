"""Training errors: errors on training images, by view, and by right and wrong labels."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Tensor, functional, torch
from mixup_core.images.probes.probe import Planned, Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginalError(Probe):
    """Error and mean cross entropy on unmodified training images; needs `data.views: single`.

    Example:
        In a study file: `probes: [original-error]`.

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from mixup_core.images.probes.training_errors import OriginalError
        >>> logits, labels = torch.tensor([[2.0, 0.0], [3.0, 1.0]]), torch.tensor([0, 1])
        >>> subject = SimpleNamespace(outputs=lambda: (logits, labels))
        >>> OriginalError().measure(subject)["train/error"]
        0.5
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "original-error"
    metrics: ClassVar = {
        "train/error": Metric(label="training error, original images", unit="%"),
        "train/nll": Metric(label="training NLL, original images", unit="nats", least=0.0),
    }
    views: ClassVar = "single"

    def measure(self, subject: Subject) -> dict[str, float]:
        logits, labels = subject.outputs()
        return {
            "train/error": _error(logits, labels),
            "train/nll": float(functional.cross_entropy(logits.double(), labels)),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _ViewsError(Probe):
    """Base class of errors on the training images with two views; subclasses record one metric."""

    views: ClassVar = "concat"
    gamma: ClassVar[float | None] = None
    """Weight of the image's own view, in [0, 1]; None: as training draws it."""

    def measure(self, subject: Subject) -> dict[str, float]:
        (metric,) = self.metrics
        return {metric: _error(*subject.outputs(gamma=self.gamma))}


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiViewError(_ViewsError):
    """Error on training images with both views: the image, and an image of the paired class.

    The weights of the views, gamma and 1 - gamma, are drawn anew as in training.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, for the views.

    Example:
        In a study file: `probes: [multi-view-error]`, `data.views: concat`.

        >>> from mixup_core.images.probes.training_errors import MultiViewError
        >>> list(MultiViewError().metrics), MultiViewError().views
        (['train/multi_view_error'], 'concat')
    """

    tag: ClassVar = "multi-view-error"
    metrics: ClassVar = {
        "train/multi_view_error": Metric(label="training error, both views", unit="%")
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class SpuriousError(_ViewsError):
    """Training error on the second view alone, an image of the paired class; the first is 0.

    The input is [0, x'] with second view x'. The error is low if the network uses this view.

    Example:
        In a study file: `probes: [spurious-error]`, `data.views: concat`.

        >>> from mixup_core.images.probes.training_errors import SpuriousError
        >>> list(SpuriousError().metrics), SpuriousError().views
        (['train/spurious_error'], 'concat')
    """

    tag: ClassVar = "spurious-error"
    metrics: ClassVar = {
        "train/spurious_error": Metric(label="training error, spurious view only", unit="%")
    }
    gamma: ClassVar = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrueError(_ViewsError):
    """Training error on the first view alone, the image itself; the second is 0.

    The input is [x, 0] with the image x. The error is low if the network uses this view.

    Example:
        In a study file: `probes: [true-error]`, `data.views: concat`.

        >>> from mixup_core.images.probes.training_errors import TrueError
        >>> list(TrueError().metrics), TrueError().views
        (['train/true_error'], 'concat')
    """

    tag: ClassVar = "true-error"
    metrics: ClassVar = {
        "train/true_error": Metric(label="training error, own view only", unit="%")
    }
    gamma: ClassVar = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelErrors(Probe):
    """Error on images with right labels, and on images whose labels were replaced by noise.

    The error on wrong labels falls below 1 as the network fits the noise. `recovered` is the share
    of images with wrong labels for which the right label is predicted; `clean_lead` is the error on
    wrong labels minus that on right ones. Without label noise, only the first error is recorded.

    Source: Liu et al. 2023, arXiv:2303.01475, section 4, on the order in which labels are learned.

    Example:
        In a study file: `probes: [label-errors]`, `data.label_noise: 0.2`.

        >>> from mixup_core.images.probes.training_errors import LabelErrors
        >>> list(LabelErrors().metrics)
        ['train/clean_error', 'train/wrong_error', 'train/recovered', 'train/clean_lead']
    """

    tag: ClassVar = "label-errors"
    metrics: ClassVar = {
        "train/clean_error": Metric(label="training error, correct labels", unit="%"),
        "train/wrong_error": Metric(label="training error, wrong labels", unit="%"),
        "train/recovered": Metric(
            label="wrong labels with the correct class predicted", unit="%", is_lower_better=False
        ),
        "train/clean_lead": Metric(
            label="accuracy on correct labels minus accuracy on wrong labels",
            unit="%",
            is_lower_better=False,
            least=-1.0,
        ),
    }

    def lacks(self, planned: Planned, metric: str) -> str | None:
        noise = planned.config.data.label_noise
        if noise == 0 and metric != "train/clean_error":
            return "the run has no label noise; set data.label_noise"
        if noise == 1 and metric in {"train/clean_error", "train/clean_lead"}:
            return "all labels of the run are wrong; set data.label_noise below 1"
        return None

    def measure(self, subject: Subject) -> dict[str, float]:
        logits, labels = subject.outputs()
        given, right = logits.argmax(1), subject.images.right_labels
        is_wrong = labels != right
        misses = (given != labels).double()
        parts = (~is_wrong, is_wrong)
        sums = [torch.stack([(misses * part).sum(), part.sum().double()]) for part in parts]
        recovered = ((given == right) & is_wrong).sum().double()
        clean_misses, clean, wrong_misses, wrong, found = torch.cat(
            [*sums, recovered.view(1)]
        ).tolist()
        measured = {"train/clean_error": clean_misses / clean} if clean else {}
        if wrong:
            measured |= {
                "train/wrong_error": wrong_misses / wrong,
                "train/recovered": found / wrong,
            }
        if clean and wrong:
            measured["train/clean_lead"] = wrong_misses / wrong - clean_misses / clean
        return measured


def _error(logits: "Tensor", labels: "Tensor") -> float:
    return float((logits.argmax(1) != labels).double().mean())
