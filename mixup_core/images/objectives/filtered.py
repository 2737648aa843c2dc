"""Filter: an objective that selects mixed images by the losses of the student and a teacher."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from mixup_core.arrays import torch
from mixup_core.config.limits import Range, Share
from mixup_core.images.objectives.objective import (
    Batch,
    Forward,
    Guided,
    Loss,
    Minimised,
    Objective,
    Plain,
)
from mixup_core.laws import Law
from mixup_core.laws.schedules import epoch_after
from mixup_core.problem import Metric
from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter(Guided):
    """Objective: loss of the mixed images on which the student is worse, or better, than a teacher.

    For each mixed image, r = loss of the teacher - loss of the student, without gradient. The field
    `keep` selects the images that count: those with r <= threshold, those with r > threshold, or
    all. With threshold 0, r <= threshold if the student is not better than the teacher.

    Source: slides on data valuation for mixup, which filter by the sign of r.

    Example:
        In a study file: `objective: {filter: {teacher: erm}}`, `mix.law: {beta: 1}`.

        >>> from mixup_core.images.objectives.filtered import Filter
        >>> from mixup_core.laws import Midpoint
        >>> Filter(teacher="erm", warm_up=0.25).in_epoch(Midpoint(), epoch=2, epochs=12)
        (Midpoint(), Plain())
    """

    # Frozen: each `tag`, field name, default and metric name in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "filter"
    metrics: ClassVar = {
        "train/kept_fraction": Metric(label="images kept by the filter", unit="%"),
        "train/low_fraction": Metric(
            label="images with teacher loss - student loss <= threshold", unit="%"
        ),
    }

    keep: Literal["low", "high", "all"] = "low"
    """Images that count: `low` keeps r <= threshold, `high` the others, `all` every image (plain
    mixup).
    """
    threshold: Annotated[float, Range(-math.inf, math.inf, "()")] = 0.0
    """Threshold of r, in units of the loss."""
    warm_up: Share = 0.25
    """Fraction of the epochs, at the start, without filtering."""
    stop: Share = 1.0
    """Fraction of the epochs after which filtering ends; at least `warm_up`."""
    norm: Literal["batch", "kept"] = "batch"
    """Divisor of the sum over kept images: the size of the `batch`, or the number of `kept`
    images. A batch without kept images has loss 0.
    """

    def check(self) -> None:
        require(self.warm_up <= self.stop, "warm_up <= stop", self, "warm_up", "stop")

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        first, end = epoch_after(self.warm_up, epochs), epoch_after(self.stop, epochs)
        if not first <= epoch < end:
            return law, Plain()
        # Only settings that decide the epoch remain; `teacher_key` replaces `teacher`.
        return law, dataclasses.replace(self, teacher="", warm_up=0.0, stop=1.0)

    def on(self, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None) -> Minimised:
        if teacher is None:
            raise ValueError(f"the objective `filter` needs a teacher, got (objective={self}).")
        losses = batch.losses(batch.logits(student), loss)
        with torch.no_grad():
            ahead = batch.losses(batch.logits(teacher), loss) - losses
            low = (ahead <= self.threshold).float()
            kept = {"low": low, "high": 1 - low, "all": torch.ones_like(low)}[self.keep]
            fraction = kept.mean()
            weight = kept
            if self.norm == "kept":
                weight = kept * len(batch) / kept.sum().clamp(min=1)
        return Minimised(
            loss=(losses * weight).mean(),
            measured={"kept_fraction": fraction, "low_fraction": low.mean()},
        )

    def floor(self, mixed_floor: float) -> float | None:
        return mixed_floor if self.keep == "all" else None
