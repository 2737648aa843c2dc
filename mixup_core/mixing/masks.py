"""masked: combines the pixels of two images by a mask of weights."""

from mixup_core.arrays import Tensor, torch


def masked(own: "Tensor", beside: "Tensor", mask: "Tensor") -> "tuple[Tensor, Tensor]":
    """Return mixed images, `mask * own + (1 - mask) * beside`, and their label weights.

    The label weight of an image is the mean of its mask.
    """
    return torch.lerp(beside, own, mask.unsqueeze(1)), mask.mean(dim=(1, 2))
