"""SquaredError: squared error of the logits against the mixed label."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mixup_core.arrays import Tensor
from mixup_core.laws import Law
from mixup_core.mixing.mixed_losses import mixed_squared_errors


@dataclass(frozen=True, kw_only=True, slots=True)
class SquaredError:
    """Squared error of the logits against the mixed label, summed over classes.

    Example:
        In a study file: `loss: squared-error`.

        >>> import torch
        >>> from mixup_core.images.losses.squared_error import SquaredError
        >>> own, partner, lam = torch.tensor([0]), torch.tensor([1]), torch.tensor([0.75])
        >>> SquaredError().per_image(torch.tensor([[1.0, 0.0]]), own, partner, lam)  # 2 * (1/4)^2
        tensor([0.1250])
    """

    tag: ClassVar = "squared-error"
    lacks_floor: ClassVar[str | None] = None

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        """Return the squared error of each image's logits against its mixed label, (batch,).

        The mixed label has the weight `lam` on `labels` and 1 - `lam` on `partner_labels`.
        """
        return mixed_squared_errors(logits, labels, partner_labels, lam)

    def floor(
        self,
        law: Law,
        labels: "Tensor",
        partner: Literal["dataset", "permutation"],
        batch_size: int,
    ) -> float:
        """Return 0, the infimum of the loss: logits that equal all mixed labels have no error."""
        del law, labels, partner, batch_size
        return 0.0
