"""Saliency: how strongly an image's loss depends on each of its pixels."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mixup_core.images.forward import forward
from mixup_core.images.losses.loss import Loss
from mixup_core.images.precision import Precision

Saliency = Callable[[Tensor, Tensor], Tensor]
"""Function that takes images, (batch, channels, height, width), and labels, (batch,), and returns
the saliency of each pixel, (batch, height, width).
"""


def unmeasured(*parts: Tensor) -> Tensor:
    """Placeholder for a function that measures saliency, where no operation needs one.

    Saliency says how strongly an image's loss depends on each pixel.
    """
    raise AssertionError(
        f"saliency of {len(parts)} tensors was needed, but no `Saliency` function was given"
    )


def gradient_norms(
    network: nn.Module, loss: Loss, precision: Precision, images: Tensor, labels: Tensor
) -> Tensor:
    """Return the saliency of each pixel: root mean square, over channels, of the loss's gradient.

    The network is switched to evaluation mode and back. Gradients of weights are not changed.
    """
    is_training = network.training
    network.eval()
    with torch.enable_grad():
        images = images.detach().requires_grad_()
        logits = forward(network, images, precision=precision)
        losses = loss.per_image(logits, labels, labels, logits.new_ones(len(labels)))
        (gradient,) = torch.autograd.grad(losses.sum(), images)
    network.train(is_training)
    return gradient.square().mean(dim=1).sqrt()
