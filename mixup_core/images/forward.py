"""Forward pass of a network in the precision of a run, its batch, and the saliency of pixels."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import torch
from torch import Tensor, nn

from mixup_core.images.losses import Loss

Item = TypeVar("Item")
Result = TypeVar("Result")
Precision = Literal["float32", "tf32", "bfloat16"]


@contextmanager
def kernels(*, deterministic: bool) -> Iterator[None]:
    """Context manager: make PyTorch use deterministic kernels only, if `deterministic` is True.

    An operation without such a kernel on the device raises RuntimeError. cuBLAS is deterministic
    only with the workspace that `mixup_core.numeric_settings` sets for every process.
    """
    if not deterministic or torch.are_deterministic_algorithms_enabled():
        yield
        return
    torch.use_deterministic_algorithms(mode=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=False)


def repeatable(
    steps: Generator[Item, None, Result], *, deterministic: bool
) -> Generator[Item, None, Result]:
    """Run a generator with deterministic PyTorch kernels, if asked for, and yield its items."""
    while True:
        with kernels(deterministic=deterministic):
            try:
                item = next(steps)
            except StopIteration as ended:
                result: Result = ended.value
                return result
        yield item


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Context manager: compute float32 products on CUDA in TF32 for `tf32`, else in IEEE float32.

    Products are matrix products and convolutions. By default, PyTorch uses TF32 (10 bits of
    mantissa) in convolutions and float32 in linear layers. A backward pass uses the setting at its
    own time, so run it within the context, too.
    """
    wanted = "tf32" if precision == "tf32" else "ieee"
    cudnn: Any = torch.backends.cudnn  # its type stubs lack `conv.fp32_precision`
    places = (torch.backends.cuda.matmul, cudnn.conv)
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = wanted
    try:
        yield
    finally:
        for place, precision_before in zip(places, before, strict=True):
            place.fp32_precision = precision_before


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
        # Frozen: the arithmetic of the mix. After a change, the last bits of new runs differ from
        # stored runs of the same key; `make same-bits BASE=main` fails.
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
    is_brief = precision == "bfloat16"
    autocast = torch.autocast(images.device.type, torch.bfloat16, enabled=is_brief)
    with _mixing(network, hidden), autocast, arithmetic(precision):
        layout = layout or _memory_format(network)
        # Frozen: order of these floating-point operations. After a change, the last bits of new
        # runs differ from stored runs of the same key; `make same-bits BASE=main` fails.
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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """A batch of mixed images, with the labels of the images and of their partners."""

    mixed: Tensor
    """Input of the network, (batch, channels, height, width), float32."""
    unmixed: Callable[[], Tensor] | None
    """Function that returns the images before mixing; None: this batch is not mixed."""
    labels: Tensor
    """Labels of the images, (batch,), int64."""
    partner_labels: Tensor
    """Labels of the partners, (batch,), int64."""
    lam: Tensor
    """Weight of `labels`, (batch,), float32, in [0, 1]."""
    is_test: Tensor | None = None
    """True for test images, (batch,), bool; None if the run trains on none (`data.oracle`)."""
    hidden: HiddenMix | None = None
    """Mixing at a hidden layer, or None. If set, `mixed` contains the images before mixing, then
    their partners.
    """

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def images(self) -> Tensor:
        """The images before mixing. They are built on access, since few objectives use them."""
        return self.mixed if self.unmixed is None else self.unmixed()

    def logits(self, network: Forward, after: Tensor | None = None) -> Tensor:
        """Return the logits of the mixed images, (batch, classes).

        With `after`, the result is (further images + batch, classes), further images first.
        """
        images = self.mixed if after is None else torch.cat([after, self.mixed])
        return network(images) if self.hidden is None else network(images, self.hidden)

    def losses(self, logits: Tensor, loss: Loss) -> Tensor:
        """Return the loss of each mixed image, (batch,), from its logits, (batch, classes)."""
        return loss.per_image(logits, self.labels, self.partner_labels, self.lam)


Saliency = Callable[[Tensor, Tensor], Tensor]
"""Function that takes images, (batch, channels, height, width), and labels, (batch,), and returns
the saliency of each pixel, (batch, height, width).
"""


def unmeasured(*parts: Tensor) -> Tensor:
    """Placeholder for a function that measures saliency, where no operation needs one."""
    raise AssertionError(f"no function measures the saliency of {len(parts)} tensors")


def input_gradient(network: Forward, loss: Loss, images: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient of each image's loss with respect to its pixels."""
    with torch.enable_grad():
        images = images.detach().requires_grad_()
        logits = network(images)
        losses = loss.per_image(logits, labels, labels, logits.new_ones(len(labels)))
        (gradient,) = torch.autograd.grad(losses.sum(), images)
    return gradient


def gradient_norms(
    network: nn.Module, loss: Loss, precision: Precision, images: Tensor, labels: Tensor
) -> Tensor:
    """Return the saliency of each pixel: root mean square, over channels, of the loss's gradient.

    The network is switched to evaluation mode and back. Gradients of weights are not changed.
    """
    is_training = network.training
    network.eval()
    gradient = input_gradient(partial(forward, network, precision=precision), loss, images, labels)
    network.train(is_training)
    return gradient.square().mean(dim=1).sqrt()
