"""Forward: the forward pass of a network in the precision of a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from mixup_core.images.precision import DTYPES, Precision, arithmetic


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HiddenMix:
    """Mixing of images with their partners at a hidden layer of the network.

    The last rows of the network's input are the images, followed by their partners. Rows before
    them stay unmixed: further images that an objective needs (`after` in `Batch.logits`).
    """

    layer: int
    """1-based index of the layer whose outputs are mixed, `network.hidden_layers[layer - 1]`."""
    lam: Tensor
    """Weight of each image, (images,); its partner has 1 minus this weight."""

    def of(self, hidden: Tensor) -> Tensor:
        """Mix the outputs of a hidden layer: one row for each image and its partner.

        Rows that are not mixed come first in the result, unchanged.
        """
        count = len(self.lam)
        first, end = len(hidden) - 2 * count, len(hidden) - count
        others, own, beside = hidden[:first], hidden[first:end], hidden[end:]
        weight = self.lam.to(hidden.dtype).view(-1, *[1] * (hidden.dim() - 1))
        return torch.cat([others, torch.lerp(beside, own, weight)])


class Forward(Protocol):
    """Function from images (batch, channels, height, width) to logits (batch, classes), float32."""

    def __call__(self, images: Tensor, hidden: HiddenMix | None = None) -> Tensor:
        """Return logits, (batch, classes). With `hidden`, an image and its partner give one row."""


def forward(
    network: nn.Module,
    images: Tensor,
    hidden: HiddenMix | None = None,
    *,
    precision: Precision,
    layout: torch.memory_format | None = None,
) -> Tensor:
    """Return a network's logits, (batch, classes); float32 in every precision."""
    dtype = DTYPES[precision]
    autocast = torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32)
    with _mixing(network, hidden), autocast, arithmetic(precision):
        layout = layout or _memory_format(network)
        logits: Tensor = network(images.contiguous(memory_format=layout))
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
    """Return the memory format that suits the first layer: channels last for a convolution."""
    weights = next(network.parameters(), None)
    is_convolution = weights is not None and weights.dim() == 4
    return torch.channels_last if is_convolution else torch.contiguous_format
