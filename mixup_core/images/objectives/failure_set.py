"""FailureSet: trains on the training images and on the test images that a teacher misclassifies."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import torch
from mixup_core.images.objectives.objective import (
    Batch,
    Forward,
    Guided,
    Loss,
    Minimised,
    Objective,
)
from mixup_core.laws import Law
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureSet(Guided):
    """Objective: loss of training images, and of test images that a teacher misclassifies.

    Batches are drawn from training and test images (`data.oracle: true`) and are not mixed. A test
    image counts only if the teacher predicts a wrong class for it; the teacher is a run that is
    trained first. The loss is the mean over the images that count, or 0 if none counts. A run with
    this objective trains on test images, so use it only as the teacher of other runs.

    Source: slides on data valuation for mixup, which train a network on data D and failure set F.

    Example:
        In a study file: `objective: {failure-set: {teacher: erm}}`, `data.oracle: true`.

        >>> from mixup_core.images.objectives.failure_set import FailureSet
        >>> FailureSet(teacher="erm").has_to_see_test, FailureSet(teacher="erm").must_not_mix
        (True, True)
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "failure-set"
    has_to_see_test: ClassVar = True
    must_not_mix: ClassVar = True
    metrics: ClassVar = {
        "train/failure_fraction": Metric(
            label="test images that the teacher misclassifies", unit="%"
        )
    }

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        return law, dataclasses.replace(self, teacher="")  # `teacher_key` replaces it

    def on(self, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None) -> Minimised:
        if teacher is None or batch.is_test is None:
            raise ValueError(
                "this objective trains on the test images that its teacher gets wrong, so it needs "
                f"a teacher and `data.oracle: true`, got (objective={self})."
            )
        losses = batch.losses(batch.logits(student), loss)
        with torch.no_grad():
            is_wrong = batch.logits(teacher).argmax(1) != batch.labels
            is_failure = batch.is_test & is_wrong
            counts = (~batch.is_test | is_failure).float()
        return Minimised(
            loss=(losses * counts).sum() / counts.sum().clamp(min=1),
            measured={"failure_fraction": is_failure.float().mean()},
        )
