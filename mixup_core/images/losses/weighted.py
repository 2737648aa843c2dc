"""Weighted: cross entropy in which each class has a weight."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from mixup_core.laws import Law
from mixup_core.mixing.mixed_losses import mixed_cross_entropies


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Weighted:
    """Cross entropy in which each part of a mixed label has the weight of its class.

    Its mean over a batch is PyTorch's for labels that are probabilities. For class indices PyTorch
    divides by the sum of the weights of the batch instead.
    """

    weights: Tensor
    """(classes,), float32."""
    smoothing: float
    """Share of each target that is spread over all classes, `CrossEntropy.smoothing`."""

    def per_image(
        self, logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor
    ) -> Tensor:
        """Return the loss of each image, (batch,)."""
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
        """Return None: no infimum is known under weights."""
        del law, labels, partner, batch_size
