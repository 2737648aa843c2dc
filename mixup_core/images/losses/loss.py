"""Loss: interface of losses of images with mixed labels.

Each loss is a dataclass with a `tag`. Their files are imported whenever a study is read, so import
torch inside the methods.
"""

from typing import Literal, Protocol

from mixup_core.arrays import Tensor
from mixup_core.images.losses.cross_entropy import CrossEntropy
from mixup_core.images.losses.squared_error import SquaredError
from mixup_core.laws import Law


class Loss(Protocol):
    """Interface of losses: loss of each image of a mixed batch, and lowest possible mean loss."""

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        """Return the loss of each image, (batch,)."""

    @property
    def lacks_floor(self) -> str | None:
        """The reason why the floor of the loss is unknown, and what to set; None if it is known."""

    def floor(
        self,
        law: Law,
        labels: "Tensor",
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> float:
        """Return the infimum of the mean loss over all classifiers; `lacks_floor` must be None."""


LossChoice = CrossEntropy | SquaredError
"""Union of all losses. To add one, write its file and add it here."""
