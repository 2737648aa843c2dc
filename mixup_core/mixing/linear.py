"""Linear: interpolates between two images (the original mixup)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Tensor, torch
from mixup_core.mixing.operation import Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class Linear(Operation):
    """Mixup: lam x + (1 - lam) x' for an image x and its partner x'; the label weight is lam.

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.

    Example:
        In a study file: `mix.operation: linear`.

        >>> import torch
        >>> from mixup_core.mixing.linear import Linear
        >>> own, beside, lam = torch.ones(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), torch.tensor([0.75])
        >>> Linear().mix(own, beside, lam, torch.empty(1, 0))
        (tensor([[[[0.7500, 0.7500]]]]), tensor([0.7500]))
    """

    # Frozen: each `tag` in this file. After a change, stored results are not found or get another
    # meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "linear"
    is_linear: ClassVar = True
    has_linear_floor: ClassVar = True

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del drawn
        return mix(own, beside, lam), lam


def mix(
    images: Tensor, partner_images: Tensor, lam: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Return `lam * images + (1 - lam) * partner_images`."""
    # Frozen: order of these floating-point operations. After a change, the last bits of new runs
    # differ from stored runs of the same key; `make same-bits BASE=main` fails.
    weight = lam.reshape(lam.shape + (1,) * (images.dim() - 1)) if lam.dim() else lam
    return torch.lerp(partner_images, images, weight, out=out)
