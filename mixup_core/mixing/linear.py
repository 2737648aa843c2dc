"""mix: linear interpolation of images."""

import torch
from torch import Tensor


def mix(
    images: Tensor, partner_images: Tensor, lam: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Return `lam * images + (1 - lam) * partner_images`.

    Args:
        images: (batch, ...), float.
        partner_images: As `images`.
        lam: Weight of `images`, in [0, 1]; () for one weight per batch, (batch,) for one each.
        out: Where it is written, if anywhere.
    """
    weight = lam.reshape(lam.shape + (1,) * (images.dim() - 1)) if lam.dim() else lam
    return torch.lerp(partner_images, images, weight, out=out)
