"""GridMix: each cell of a grid is taken from one of two images."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.mixing.operation import Operation
from mixup_core.tree.limits import Count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class GridMix(Operation):
    """Each cell stays with probability lam; label weight: the share of pixels that stay.

    The grid has `cells` x `cells` cells, as equal as the pixels allow. It is the operation `cutmix`
    of the problem rare-features, whose cells are patches. The source's further loss, which
    classifies each cell, is left out.

    Source: Baek, Bang and Shim 2021, Pattern Recognition 109, 107594; its abstract alone was read.
    """

    tag: ClassVar = "gridmix"

    cells: Count = 4
    """Along each side of the image; more than its pixels are as many as these."""

    def draw(
        self, lam: "NDArray[np.float64]", size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any]":
        """Return which cells stay, (weights, cells, cells), bool."""
        from mixup_core.mixing.cells import draw_kept

        del size
        return draw_kept(lam, self.cells**2, rng).reshape(-1, self.cells, self.cells)

    def mix(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return the images and the share of their own pixels."""
        import torch

        from mixup_core.mixing.masks import masked

        del lam
        kept = drawn.to(own.dtype)
        for axis, length in enumerate(own.shape[2:], 1):
            cell = torch.arange(length, device=own.device) * self.cells // length
            kept = kept.index_select(axis, cell)
        return masked(own, beside, kept)
