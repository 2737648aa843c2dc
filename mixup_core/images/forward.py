"""A network's forward pass in the precision of a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from mixup_core.images.precision import DTYPES, Precision, arithmetic


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HiddenMix:
    """Mixes the last images of a pass inside the network: first come images, then partners."""

    layer: int
    """Number of the layer whose outputs are mixed, `network.hidden_layers[layer - 1]`."""
    lam: Tensor
    """Weight of each image, (images,); as many partners follow the images."""

    def of(self, hidden: Tensor) -> Tensor:
        """Return the plain images as they are, then the mixed pairs.

        Args:
            hidden: (others + 2 images, ...).
        """
        count = len(self.lam)
        first, end = len(hidden) - 2 * count, len(hidden) - count
        others, own, beside = hidden[:first], hidden[first:end], hidden[end:]
        weight = self.lam.to(hidden.dtype).view(-1, *[1] * (hidden.dim() - 1))
        return torch.cat([others, torch.lerp(beside, own, weight)])


class Forward(Protocol):
    """Images, (batch, channels, height, width), to logits, (batch, classes), float32."""

    def __call__(self, images: Tensor, hidden: HiddenMix | None = None) -> Tensor:
        """Return the logits, (batch, classes), of fewer rows where some are mixed inside."""


def forward(
    network: nn.Module,
    images: Tensor,
    hidden: HiddenMix | None = None,
    *,
    precision: Precision,
) -> Tensor:
    """Return logits, (batch, classes), float32, whatever the precision of the pass.

    Args:
        network: In the mode it is to run in.
        images: (batch, channels, height, width), float32.
        hidden: What is mixed inside the network; None: nothing.
        precision: Of the arithmetic inside the network.
    """
    dtype = DTYPES[precision]
    autocast = torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32)
    with _mixing(network, hidden), autocast, arithmetic(precision):
        logits: Tensor = network(images.contiguous(memory_format=_memory_format(network)))
    return logits.float()


@contextmanager
def _mixing(network: nn.Module, hidden: HiddenMix | None) -> Iterator[None]:
    if hidden is None:
        yield
        return
    layers: Any = network.hidden_layers
    hook = layers[hidden.layer - 1].register_forward_hook(lambda _, __, out: hidden.of(out))
    try:
        yield
    finally:
        hook.remove()


def _memory_format(network: nn.Module) -> torch.memory_format:
    """Return how the first layer wants its images: convolutions with the channels last."""
    weights = next(network.parameters(), None)
    is_convolution = weights is not None and weights.dim() == 4
    return torch.channels_last if is_convolution else torch.contiguous_format
