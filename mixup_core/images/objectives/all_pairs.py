"""AllPairs: an objective, the loss of every pair of images of a batch."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.images.objectives.objective import Batch, Forward, Loss, Minimised, Objective, Plain
from mixup_core.laws import Law
from mixup_core.mixing.linear import mix


@dataclass(frozen=True, kw_only=True, slots=True)
class AllPairs(Objective):
    """Objective: mean loss of all ordered pairs of a batch, including each image with itself.

    A batch of B images becomes B^2 mixed images. In the pair (i, j), image i has the weight lam_i
    and image j the weight 1 - lam_i; `mix.partner` has no effect.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, section 2, where the mixup loss J_M is a mean
    over all pairs.

    Example:
        In a study file: `objective: all-pairs`, `mix.law: midpoint`.

        >>> from mixup_core.images.objectives.all_pairs import AllPairs
        >>> from mixup_core.laws import Erm
        >>> AllPairs().in_epoch(Erm(), epoch=0, epochs=10)  # without mixing, there are no pairs
        (Erm(), Plain())
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "all-pairs"
    has_to_mix: ClassVar = True
    is_linear: ClassVar = True

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        return law, self if law.mixes else Plain()

    def on(self, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None) -> Minimised:
        if batch.unmixed is None:
            return Plain().on(batch, student, loss, teacher)
        count, images = len(batch), batch.images
        lam = batch.lam.repeat_interleave(count)
        own, partner = images.repeat_interleave(count, dim=0), images.repeat(count, 1, 1, 1)
        labels, partner_labels = batch.labels.repeat_interleave(count), batch.labels.repeat(count)
        logits = student(mix(own, partner, lam))
        return Minimised(loss=loss.per_image(logits, labels, partner_labels, lam).mean())
