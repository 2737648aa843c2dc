"""Scores: accuracy, balanced accuracy and AUROC of validation and test images."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import special
from mixup_core.images.probes.probe import Planned, Probe, Subject
from mixup_core.problem import Metric
from mixup_core.records import AVERAGED

_LABELS = {
    "accuracy": ("accuracy", "%"),
    "balanced_accuracy": ("balanced accuracy", "%"),
    "auroc": ("AUROC", ""),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores(Probe):
    """Accuracy, balanced accuracy and AUROC on validation and test images, at each evaluation.

    Balanced accuracy is the accuracy on each class, averaged over classes. AUROC is the area under
    the ROC curve of one class against the rest, averaged over classes; it is not recorded if a
    class has no image. Each metric can be the `headline` of a study.

    Example:
        In a study file: `probes: [scores]`.

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from mixup_core.images.probes.scores import Scores
        >>> logits, labels = torch.tensor([[2.0, 0.0], [3.0, 1.0]]), torch.tensor([0, 1])
        >>> held_out = {"test": SimpleNamespace(labels=labels)}
        >>> Scores().measure(SimpleNamespace(evaluated={("test", ""): logits}, held_out=held_out))
        {'test/accuracy': 0.5, 'test/balanced_accuracy': 0.5, 'test/auroc': 0.5}
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "scores"
    is_of_evaluation: ClassVar = True
    metrics: ClassVar = {
        f"{split}/{name}{suffix}": Metric(
            label=f"{title} {label}{note}", unit=unit, is_lower_better=False, least=0.0, most=1.0
        )
        for suffix, note in (("", ""), (AVERAGED, ", averaged weights"))
        for split, title in (("test", "test"), ("val", "validation"))
        for name, (label, unit) in _LABELS.items()
    }

    def lacks(self, planned: Planned, metric: str) -> str | None:
        split, data, info = metric.partition("/")[0], planned.config.data, planned.info
        if "auroc" not in metric:
            return None
        count = info.num_test if split == "test" else data.num_held_out(info.num_train)
        labels = planned.labels(split)
        if (count if labels is None else len(set(labels.tolist()))) >= info.num_classes:
            return None
        more = "; set a larger data.val_size" if split == "val" else ""
        return f"the {count} {split} images lack some of the {info.num_classes} classes{more}"

    def measure(self, subject: Subject) -> dict[str, float]:
        from mixup_core.predictions import accuracy, auroc, balanced_accuracy

        found: dict[str, float] = {}
        for (split, suffix), logits in subject.evaluated.items():
            chances = special.softmax(logits.double().cpu().numpy(), axis=1)
            labels = subject.held_out[split].labels.cpu().numpy()
            area = auroc(chances, labels)
            found |= {
                f"{split}/accuracy{suffix}": accuracy(chances, labels),
                f"{split}/balanced_accuracy{suffix}": balanced_accuracy(chances, labels),
                **({} if area is None else {f"{split}/auroc{suffix}": area}),
            }
        return found
