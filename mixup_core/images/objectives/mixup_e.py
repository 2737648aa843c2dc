"""MixupE: an objective, mixup loss minus a weighted alignment of logits with labels."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import functional
from mixup_core.config.limits import NonNegative
from mixup_core.images.objectives.objective import Batch, Forward, Loss, Minimised, Objective, Plain
from mixup_core.laws import Law
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class MixupE(Objective):
    """Objective: mixup loss minus eta times the alignment of unmixed images with their labels.

    The alignment a_i of image x_i with label y_i uses its logits g(x_i); `threshold` is a setting:

        a_i = <g(x_i), onehot(y_i) - softmax(g(x_i))>
        loss = mixup loss - eta * sum over a_i < threshold of a_i / batch size

    The gradient is rescaled as in the authors' code: multiplied by the mixup loss, divided by the
    absolute value of the whole loss. With lam from Beta(alpha, alpha), the authors weight the
    alignment by eta * alpha / (2 alpha + 1), with eta = 0.001; here `eta` is the whole weight.

    Source: Zou et al. 2023, arXiv:2212.13381, in the form that its code calls version 3.

    Example:
        In a study file: `objective: {mixup-e: {eta: 0.001}}`, `mix.law: {beta: 1}`.

        >>> from mixup_core.images.objectives.mixup_e import MixupE
        >>> list(MixupE().metrics)
        ['train/alignment', 'train/misaligned_fraction']
    """

    # Frozen: each `tag`, field name, default and metric name in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "mixup-e"
    has_to_mix: ClassVar = True
    metrics: ClassVar = {
        "train/alignment": Metric(
            label="alignment of logits with label minus prediction", is_lower_better=False
        ),
        "train/misaligned_fraction": Metric(label="images with negative alignment", unit="%"),
    }

    eta: NonNegative = 0.001
    """Weight of the regulariser. With 0 the run is mixup."""
    threshold: NonNegative = 1.0
    """Limit of the alignment a_i: only images with a smaller alignment count in the regulariser."""

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        return law, self if law.mixes and self.eta > 0 else Plain()

    def on(self, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None) -> Minimised:
        own, mixed = batch.logits(student, after=batch.images).chunk(2)
        plain = batch.losses(mixed, loss).mean()
        error = functional.one_hot(batch.labels, own.shape[1]) - own.softmax(1)
        alignment = (own * error).sum(1)
        counted = alignment * (alignment.detach() < self.threshold)
        whole = plain - self.eta * counted.mean()
        scale = (plain / whole.abs()).detach()
        return Minimised(
            loss=scale * whole,
            measured={
                "alignment": alignment.detach().mean(),
                "misaligned_fraction": (alignment.detach() < 0).float().mean(),
            },
        )
