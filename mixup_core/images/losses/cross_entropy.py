"""CrossEntropy: cross entropy of an image with a mixed label."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mixup_core.arrays import Tensor
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Share
from mixup_core.laws import Law
from mixup_core.mixing.loss_floor import loss_floor
from mixup_core.mixing.mixed_losses import mixed_cross_entropies


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossEntropy(Checked):
    """Cross entropy with a mixed label, in nats (`mixup_core.mixing.mixed_losses`).

    Example:
        In a study file: `loss: {cross-entropy: {smoothing: 0.1}}`.

        >>> import torch
        >>> from mixup_core.images.losses.cross_entropy import CrossEntropy
        >>> own, partner, lam = torch.tensor([0]), torch.tensor([1]), torch.tensor([0.75])
        >>> CrossEntropy().per_image(torch.tensor([[2.0, 0.0]]), own, partner, lam)
        tensor([0.6269])
    """

    tag: ClassVar = "cross-entropy"

    smoothing: Share = 0.0
    """Label smoothing: share of each label that is spread evenly over all classes. It serves as a
    control for the effect of mixing on labels. Source: Szegedy et al. 2016, arXiv:1512.00567,
    section 7.
    """

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        """Return each image's cross entropy with its mixed label, (batch,).

        The mixed label has the weight `lam` on `labels` and 1 - `lam` on `partner_labels`.
        """
        return mixed_cross_entropies(logits, labels, partner_labels, lam, self.smoothing)

    @property
    def lacks_floor(self) -> str | None:
        """The reason why the infimum of the mean loss is unknown: smoothed labels; else None."""
        return "with label smoothing; set loss.smoothing: 0" if self.smoothing > 0 else None

    def floor(
        self,
        law: Law,
        labels: "Tensor",
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> float:
        """Return the infimum of the mean loss over all classifiers, without label smoothing.

        `mixup_core.mixing.loss_floor` computes it from the law of lam, the labels of all training
        images, and the way in which partners are drawn.
        """
        return loss_floor(law, labels, partner, batch_size)
