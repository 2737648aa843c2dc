"""LOSSES: name to the loss of each image of a mixed batch, and the floor of its mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from mixup_core.laws import Law
from mixup_core.mixing import loss_floor, mixed_cross_entropies, mixed_squared_errors

PerImage = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(logits, labels, partner labels, lam) to the loss of each image, (batch,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """A loss and what is known of it."""

    per_image: PerImage
    floor: Callable[[Law, Tensor, Literal["dataset", "permutation"], int], float]
    """Infimum of the mean over mixed images; arguments as for `mixup_core.mixing.loss_floor`."""


LOSSES: Mapping[str, Loss] = {
    "cross-entropy": Loss(per_image=mixed_cross_entropies, floor=loss_floor),
    # A function that is the mixed target wherever images were mixed has no squared error.
    "squared-error": Loss(per_image=mixed_squared_errors, floor=lambda *_: 0.0),
}
"""Name, as `loss` of a configuration gives it, to the loss."""
