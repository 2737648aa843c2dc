"""Loss: losses of images with mixed labels.

Each is a dataclass with a `tag`. Their files are imported whenever a study is read, so import torch
inside the methods.
"""

from typing import TYPE_CHECKING, Literal, Protocol

from mixup_core.images.losses.cross_entropy import CrossEntropy
from mixup_core.images.losses.squared_error import SquaredError
from mixup_core.laws import Law

if TYPE_CHECKING:
    from torch import Tensor


class Loss(Protocol):
    """Computes the loss of each image of a mixed batch."""

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        """Return the loss of each image, (batch,)."""

    def floor(
        self,
        law: Law,
        labels: "Tensor",
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> float | None:
        """Return the infimum of the mean loss over all functions; None if it is not known."""


LossChoice = CrossEntropy | SquaredError
"""All losses. To add one, write its file and add it here."""
