"""Weighted: cross entropy with class weights."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from mixup_core.laws import Law
from mixup_core.mixing.mixed_losses import mixed_cross_entropies


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Weighted:
    """Cross entropy in which each part of a mixed label has the weight of its class.

    The mean over a batch divides by the number of images, as PyTorch does for labels that are
    probabilities. (For class indices, PyTorch divides by the sum of the weights in the batch.)
    """

    weights: Tensor
    """Weight of each class, (classes,), float32."""
    smoothing: float
    """Value of `CrossEntropy.smoothing`."""

    def per_image(
        self, logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor
    ) -> Tensor:
        """Return each image's weighted cross entropy with its mixed label, (batch,).

        The mixed label has the weight `lam` on `labels` and 1 - `lam` on `partner_labels`.
        """
        return mixed_cross_entropies(
            logits, labels, partner_labels, lam, self.smoothing, self.weights
        )

    def floor(
        self,
        law: Law,
        labels: Tensor,
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> None:
        """Return None: with class weights, the infimum of the mean loss is unknown."""
        del law, labels, partner, batch_size
