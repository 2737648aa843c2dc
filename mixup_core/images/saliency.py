"""Saliency: how strongly the loss of an image depends on each of its pixels."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mixup_core.images.forward import forward
from mixup_core.images.losses.loss import Loss
from mixup_core.images.precision import Precision

Saliency = Callable[[Tensor, Tensor], Tensor]
"""Images, (batch, channels, height, width), and their labels, to (batch, height, width)."""


def unmeasured(*parts: Tensor) -> Tensor:
    """Take the place of `Saliency` where no operation needs any.

    Raises:
        AssertionError: If one does.
    """
    raise AssertionError(f"no network measures saliency here, of {len(parts)} tensors")


def gradient_norms(
    network: nn.Module, loss: Loss, precision: Precision, images: Tensor, labels: Tensor
) -> Tensor:
    """Return the root mean square over channels of the loss's gradient: (batch, height, width).

    The network is in evaluation mode for it, and is left as it was; no gradient of a weight is
    changed.

    Args:
        network: As training has left it.
        loss: Of an image.
        precision: Of the arithmetic inside the network.
        images: (batch, channels, height, width), float32.
        labels: (batch,), int64.
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
