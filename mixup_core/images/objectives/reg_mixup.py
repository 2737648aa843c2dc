"""RegMixup: an objective, the loss of the unmixed images plus a weighted loss of the mixed ones."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mixup_core.arrays import torch
from mixup_core.config.limits import NonNegative
from mixup_core.images.objectives.objective import Batch, Forward, Loss, Minimised, Objective, Plain
from mixup_core.laws import Erm, Law


@dataclass(frozen=True, kw_only=True, slots=True)
class RegMixup(Objective):
    """Objective: loss of the unmixed images plus the weighted loss of the mixed ones.

        loss(g(x), y) + eta * mixup loss

    The mixed images follow `mix`; the source's alpha is `mix.law.alpha`. Unmixed and mixed images
    are in one forward pass, so that BatchNorm computes its statistics over both.

    Source: Pinto et al. 2022, arXiv:2206.14502, equation 4; with Beta(20, 20) and eta = 1.

    Example:
        In a study file: `objective: {regmixup: {eta: 0.5}}`, `mix.law: {beta: 20}`.

        >>> from mixup_core.images.objectives.reg_mixup import RegMixup
        >>> RegMixup(eta=0.5).floor(0.6), RegMixup(eta=0.5, reduction="mean").floor(0.6)
        (0.3, 0.15)
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "regmixup"
    has_to_mix: ClassVar = True

    eta: NonNegative = 1.0
    """Weight of the mixup loss. With 0, nothing is mixed and the run is ERM."""
    reduction: Literal["sum", "mean"] = "sum"
    """Combination of both losses: `sum`, or `mean`, half the sum, as in the authors' code."""

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        if self.eta == 0:
            return Erm(), Plain()
        return law, self if law.mixes else Plain()

    def on(self, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None) -> Minimised:
        own, mixed = batch.logits(student, after=batch.images).chunk(2)
        unmixed = torch.ones_like(batch.lam)
        own_loss = loss.per_image(own, batch.labels, batch.labels, unmixed).mean()
        both = own_loss + self.eta * batch.losses(mixed, loss).mean()
        return Minimised(loss=both / 2 if self.reduction == "mean" else both)

    def floor(self, mixed_floor: float) -> float | None:
        return self.eta * mixed_floor / (2 if self.reduction == "mean" else 1)
