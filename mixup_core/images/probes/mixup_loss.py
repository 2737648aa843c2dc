"""MixupLoss: loss of mixed images in evaluation mode, and its excess over the infimum."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import torch
from mixup_core.images.probes.probe import Planned, Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class MixupLoss(Probe):
    """Mean loss on mixed training images, with one new draw of partners and weights.

    If the infimum over all classifiers is known, the infimum and the excess over it are recorded
    too.

    Example:
        In a study file: `probes: [mixup-loss]`.

        >>> from mixup_core.images.probes.mixup_loss import MixupLoss
        >>> list(MixupLoss().metrics)
        ['train/mixup_loss', 'train/mixup_floor', 'train/mixup_excess']
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "mixup-loss"
    metrics: ClassVar = {
        "train/mixup_loss": Metric(label="mixup loss", unit="nats", least=0.0),
        "train/mixup_floor": Metric(label="lower bound of the mixup loss", unit="nats", least=0.0),
        "train/mixup_excess": Metric(label="mixup loss minus its lower bound", unit="nats"),
    }

    def lacks(self, planned: Planned, metric: str) -> str | None:
        if metric == "train/mixup_loss":
            return None
        return planned.how.lacks_floor(planned.config.loss)

    def measure(self, subject: Subject) -> dict[str, float]:
        config = subject.config
        how = subject.how
        sums = []
        with torch.no_grad():
            for batch in subject.mixed():
                losses = batch.losses(batch.logits(subject.logits), subject.loss)
                sums.append(losses.double().sum())
        total: float = sum(torch.stack(sums).tolist())
        mean, labels = total / len(subject.images), subject.images.labels
        floor = how.floor(subject.loss, labels, config.batch_size)
        if floor is None:
            return {"train/mixup_loss": mean}
        return {
            "train/mixup_loss": mean,
            "train/mixup_floor": floor,
            "train/mixup_excess": mean - floor,
        }
