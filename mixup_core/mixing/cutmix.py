"""CutMix: a box of the partner, in the place it has there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.mixing.operation import Operation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class CutMix(Operation):
    """A box is replaced by that of the partner; label weight: the share of pixels that stay.

    The sides of the box are sqrt(1 - lam) of those of the image, its centre is uniform, and what
    lies beyond the border is cut off. No floor of the loss is known.

    Source: Yun et al. 2019, arXiv:1905.04899, section 3 and algorithm A1.
    """

    tag: ClassVar = "cutmix"

    def draw(
        self, lam: "NDArray[np.float64]", size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any]":
        """Return a box for each weight, (weights, 4)."""
        import numpy as np

        from mixup_core.mixing.boxes import boxes, draw_centres, sides

        return boxes(draw_centres(len(lam), size, rng), sides(np.sqrt(1 - lam), size), size)

    def mix(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return the images and the share of their own pixels."""
        from mixup_core.mixing.boxes import outside
        from mixup_core.mixing.masks import masked

        del lam
        return masked(own, beside, outside(drawn, own))
