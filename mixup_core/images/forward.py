"""A network's forward pass in the precision of a run."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

Forward = Callable[[Tensor], Tensor]
"""Images, (batch, channels, height, width), to logits, (batch, classes), float32."""

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def forward(
    network: nn.Module, images: Tensor, precision: Literal["float32", "bfloat16"]
) -> Tensor:
    """Return logits, (batch, classes), float32, whatever the precision of the pass.

    Args:
        network: In the mode it is to run in.
        images: (batch, channels, height, width), float32.
        precision: Of the arithmetic inside the network (autocast).
    """
    dtype = PRECISIONS[precision]
    with torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32):
        logits: Tensor = network(images.contiguous(memory_format=_memory_format(network)))
    return logits.float()


def _memory_format(network: nn.Module) -> torch.memory_format:
    """Return how the first layer wants its images: convolutions with the channels last."""
    weights = next(network.parameters(), None)
    is_convolution = weights is not None and weights.dim() == 4
    return torch.channels_last if is_convolution else torch.contiguous_format
