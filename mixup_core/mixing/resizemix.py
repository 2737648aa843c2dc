"""ResizeMix: the whole partner, made smaller, in a box."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mixup_core.mixing.operation import Operation
from mixup_core.rules import require
from mixup_core.tree.limits import Range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Scale = Annotated[float, Range(0, 1, "(]")]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResizeMix(Operation):
    """The partner is resized into a box; label weight: the share of pixels outside of the box.

    The sides of the box are `smallest + (largest - smallest) (1 - lam)` of those of the image:
    under the uniform law they are uniform between both, as in the source. Its centre is uniform; a
    box that reaches beyond the border is made smaller, and still shows the whole partner (nearest
    pixels).

    Source: Qin et al. 2020, arXiv:2012.11101, section 3.
    """

    tag: ClassVar = "resizemix"

    smallest: Scale = 0.1
    """Side of the box at lam = 1, as a share of the image's."""
    largest: Scale = 0.8
    """Side of the box at lam = 0."""

    def check(self) -> None:
        """Check that the shares are in order.

        Raises:
            RuleError: If they are not.
        """
        is_sorted = self.smallest <= self.largest
        require(is_sorted, "smallest <= largest", self, "smallest", "largest")

    def draw(
        self, lam: "NDArray[np.float64]", size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any]":
        """Return a box for each weight, (weights, 4)."""
        from mixup_core.mixing.boxes import boxes, draw_centres, sides

        share = self.smallest + (self.largest - self.smallest) * (1 - lam)
        return boxes(draw_centres(len(lam), size, rng), sides(share, size), size)

    def mix(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return the images and the share of their own pixels."""
        import torch

        from mixup_core.mixing.boxes import outside
        from mixup_core.mixing.masks import masked

        del lam
        ranges = drawn.view(-1, 2, 2)
        indices = []
        for axis, length in enumerate(own.shape[2:]):
            first, end = (part.unsqueeze(1) for part in ranges[:, axis].unbind(1))
            place = (torch.arange(length, device=own.device) - first) * length
            found = torch.div(place, (end - first).clamp(min=1), rounding_mode="floor")
            indices.append(found.clamp(0, length - 1).expand(len(own), -1))
        rows, columns = indices
        image = torch.arange(len(own), device=own.device)[:, None, None]
        # Indexing puts the channels last: (batch, height, width, channels).
        resized = beside[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        return masked(own, resized, outside(drawn, own))
