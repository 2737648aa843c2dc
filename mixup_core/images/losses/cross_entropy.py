"""CrossEntropy: cross entropy with a mixed label."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from mixup_core.laws import Law
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Share

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossEntropy(Checked):
    """Cross entropy in nats; see `mixup_core.mixing.mixed_losses.mixed_cross_entropies`."""

    tag: ClassVar = "cross-entropy"

    smoothing: Share = 0.0
    """Label smoothing: share of each label that is spread evenly over all classes. It is the
    control for the effect of mixing on labels. Source: Szegedy et al. 2016, arXiv:1512.00567,
    section 7.
    """

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        """Return the loss of each image, (batch,)."""
        from mixup_core.mixing.mixed_losses import mixed_cross_entropies

        return mixed_cross_entropies(logits, labels, partner_labels, lam, self.smoothing)

    def floor(
        self,
        law: Law,
        labels: "Tensor",
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> float | None:
        """Return the infimum of the mean loss over all functions (`mixup_core.mixing.loss_floor`).

        It is not known for smoothed labels: None.
        """
        from mixup_core.mixing.loss_floor import loss_floor

        if self.smoothing > 0:
            return None
        return loss_floor(law, labels, partner, batch_size)
