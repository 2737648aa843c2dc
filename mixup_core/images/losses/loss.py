"""Loss: the loss of an image under its mixed label.

A study file chooses one of the dataclasses of this package, each with a `tag`. Their files are read
when a study is: they import torch where they compute.
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
        """Return the infimum of the mean over all functions; None: it is not known."""


LossChoice = CrossEntropy | SquaredError
"""Add a member by writing its file and naming it here."""
