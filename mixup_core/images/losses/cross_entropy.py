"""CrossEntropy: of the softmax of the logits with the mixed label."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from mixup_core.laws import Law

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossEntropy:
    """In nats; see `mixup_core.mixing.mixed_losses.mixed_cross_entropies`."""

    tag: ClassVar = "cross-entropy"

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        """Return the loss of each image, (batch,)."""
        from mixup_core.mixing.mixed_losses import mixed_cross_entropies

        return mixed_cross_entropies(logits, labels, partner_labels, lam)

    def floor(
        self,
        law: Law,
        labels: "Tensor",
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> float:
        """Return the infimum of the mean over all functions (`mixup_core.mixing.loss_floor`)."""
        from mixup_core.mixing.loss_floor import loss_floor

        return loss_floor(law, labels, partner, batch_size)
