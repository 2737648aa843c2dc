"""GridMix: replaces cells of a regular grid by the partner's cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np, torch
from mixup_core.config.limits import Range
from mixup_core.mixing.masks import draw_kept, masked
from mixup_core.mixing.operation import Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class GridMix(Operation):
    """Keeps each grid cell with probability lam; the partner's cells replace the others.

    The label weight is the share of kept pixels. The grid has `cells` x `cells` cells, of sizes as
    equal as the pixels allow. In the problem rare-features, where points consist of patches, the
    same operation is called `cutmix`. The source's second loss, which classifies each cell, is not
    implemented.

    Source: Baek, Bang and Shim 2021, Pattern Recognition 109, 107594; only its abstract was read.

    Example:
        In a study file: `mix.operation: {gridmix: {cells: 2}}`.

        >>> import torch
        >>> from mixup_core.mixing.gridmix import GridMix
        >>> own, beside = torch.ones(1, 1, 2, 4), torch.zeros(1, 1, 2, 4)
        >>> kept = torch.tensor([[[True, True], [False, True]]])
        >>> GridMix(cells=2).mix(own, beside, torch.tensor([0.7]), kept)
        (tensor([[[[1., 1., 1., 1.],
                  [0., 0., 1., 1.]]]]), tensor([0.7500]))
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "gridmix"

    cells: Annotated[int, Range(1, 1024)] = 4
    """Number of cells along each side of the image. More cells than pixels act as one per pixel."""

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        del size
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return draw_kept(lam, self.cells**2, rng).reshape(-1, self.cells, self.cells)

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del lam
        kept = drawn.to(own.dtype)
        for axis, length in enumerate(own.shape[2:], 1):
            cell = torch.arange(length, device=own.device) * self.cells // length
            kept = kept.index_select(axis, cell)
        return masked(own, beside, kept)
