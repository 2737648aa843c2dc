"""SaliencyMix: pastes a box around the partner's most salient pixel into the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np, torch
from mixup_core.mixing.masks import masked, outside, sides
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.pixel_saliency import fine_grained


@dataclass(frozen=True, kw_only=True, slots=True)
class SaliencyMix(Operation):
    """CutMix with the box centred at the partner's most salient pixel.

    Saliency is computed from pixels alone (`mixing.pixel_saliency`). Each partner has its own
    box; the authors' code uses the box of the batch's first partner for the whole batch.

    Source: Uddin et al. 2021, arXiv:2006.01791, section 3.

    Example:
        In a study file: `mix.operation: saliencymix`.

        >>> import numpy as np
        >>> from mixsweep.plugins import stream
        >>> from mixup_core.mixing.saliencymix import SaliencyMix
        >>> SaliencyMix().draw(np.array([0.75]), (8, 8), stream(0, "mixing operation"))  # pixels
        array([[4, 4]])
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "saliencymix"

    def unfit(self, size: tuple[int, int]) -> str | None:
        return None if min(size) >= 2 else f"{self.tag} needs images of at least 2 x 2 pixels"

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        del rng
        return sides(np.sqrt(1 - lam), size)

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del lam
        width = own.shape[3]
        peak = fine_grained(beside).flatten(1).argmax(1)
        centre = torch.stack([peak // width, peak % width], dim=1)
        half = drawn // 2
        ends = torch.stack([centre - half, centre + half], dim=2)
        return masked(own, beside, outside(ends.view(-1, 4), own))
