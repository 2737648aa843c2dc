"""Losses of images with mixed labels. Imported whenever a study is read: import no torch here."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Tensor
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Share
from mixup_core.laws import Law
from mixup_core.mixing.mixed_losses import loss_floor, mixed_cross_entropies, mixed_squared_errors
from mixup_core.mixing.partners import Pairing


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossEntropy(Checked):
    """Cross entropy with a mixed label, in nats (`mixup_core.mixing.mixed_losses`).

    Example:
        In a study file: `loss: {cross-entropy: {smoothing: 0.1}}`.

        >>> import torch
        >>> from mixup_core.images.losses import CrossEntropy
        >>> own, partner, lam = torch.tensor([0]), torch.tensor([1]), torch.tensor([0.75])
        >>> CrossEntropy().per_image(torch.tensor([[2.0, 0.0]]), own, partner, lam)
        tensor([0.6269])
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "cross-entropy"

    smoothing: Share = 0.0
    """Label smoothing: share of each label that is spread evenly over all classes. It serves as a
    control for the effect of mixing on labels. Source: Szegedy et al. 2016, arXiv:1512.00567,
    section 7.
    """

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        return mixed_cross_entropies(logits, labels, partner_labels, lam, self.smoothing)

    @property
    def lacks_floor(self) -> str | None:
        return "with label smoothing; set loss.smoothing: 0" if self.smoothing > 0 else None

    def floor(self, law: Law, labels: "Tensor", pairing: Pairing, batch_size: int) -> float:
        return loss_floor(law, labels, pairing, batch_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class SquaredError:
    """Squared error of the logits against the mixed label, summed over classes.

    Example:
        In a study file: `loss: squared-error`.

        >>> import torch
        >>> from mixup_core.images.losses import SquaredError
        >>> own, partner, lam = torch.tensor([0]), torch.tensor([1]), torch.tensor([0.75])
        >>> SquaredError().per_image(torch.tensor([[1.0, 0.0]]), own, partner, lam)  # 2 * (1/4)^2
        tensor([0.1250])
    """

    tag: ClassVar = "squared-error"
    lacks_floor: ClassVar[str | None] = None

    def per_image(
        self, logits: "Tensor", labels: "Tensor", partner_labels: "Tensor", lam: "Tensor"
    ) -> "Tensor":
        return mixed_squared_errors(logits, labels, partner_labels, lam)

    def floor(self, law: Law, labels: "Tensor", pairing: Pairing, batch_size: int) -> float:
        del law, labels, pairing, batch_size
        return 0.0  # logits that equal all mixed labels have no error


Loss = CrossEntropy | SquaredError
"""Union of all losses. To add one, write its class and add it here.

`per_image` returns the loss of each image, (batch,). `floor` returns the infimum of the mean loss
over all classifiers; `lacks_floor` is the reason why it is unknown and what to set, or None.
"""
