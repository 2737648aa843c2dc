"""CutMix: replaces a box of an image's pixels by the same box of the partner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np
from mixup_core.mixing.masks import boxes, draw_centres, masked, outside, sides
from mixup_core.mixing.operation import Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class CutMix(Operation):
    """Replaces a box of the image by the partner's; the label weight is the share of pixels kept.

    The sides of the box are sqrt(1 - lam) times those of the image. The centre of the box is a
    uniformly random pixel, and the box is clipped at the borders. No formula for the infimum of the
    expected loss is known, so runs do not record how far their loss is above it.

    Source: Yun et al. 2019, arXiv:1905.04899, section 3 and algorithm A1.

    Example:
        In a study file: `mix.operation: cutmix`.

        >>> import torch
        >>> from mixup_core.mixing.cutmix import CutMix
        >>> own, beside, lam = torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), torch.tensor([0.8])
        >>> box = torch.tensor([[0, 1, 1, 2]])  # row 0, column 1
        >>> CutMix().mix(own, beside, lam, box)
        (tensor([[[[1., 0.],
                  [1., 1.]]]]), tensor([0.7500]))
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "cutmix"

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return boxes(draw_centres(len(lam), size, rng), sides(np.sqrt(1 - lam), size), size)

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del lam
        return masked(own, beside, outside(drawn, own))
