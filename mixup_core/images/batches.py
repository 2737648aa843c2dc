"""Batches: the images of one epoch as a law mixes them, everything random drawn up front."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from mixup_core.images.config import TrainConfig
from mixup_core.images.epoch import Epoch
from mixup_core.images.kernel import Kernel, kernel_for
from mixup_core.images.losses.loss import Loss
from mixup_core.images.views import TrainingImages
from mixup_core.laws import Midpoint
from mixup_core.mixing.lambdas import draw_lambdas
from mixup_core.mixing.linear import mix
from mixup_core.mixing.partners import draw_partners
from mixup_core.seeding import stream

_BYTES_AT_A_TIME = 2**19
"""Of the images that are assembled together on a CPU, both views counted: its second-level cache
holds them through the five passes that make them."""
_VALUES_WORTH_A_KERNEL = 2 * 10**8
"""Values that a run assembles: PyTorch takes about 3 ns longer for each, compiling 0.2 s."""
_VALUES_OF_PROOF = 2**20


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """Some images and what they are mixed with."""

    mixed: Tensor
    """(batch, channels, height, width), float32: what a network is trained on."""
    unmixed: Callable[[], Tensor] | None
    """Assembles the images before they are mixed; None under a law that does not mix."""
    labels: Tensor
    """(batch,), int64."""
    partner_labels: Tensor
    """(batch,), int64."""
    lam: Tensor
    """Weight of `images` and `labels`, (batch,), float32, in [0, 1]."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def images(self) -> Tensor:
        """As `mixed`, but not mixed; made when it is asked for, since few objectives do."""
        return self.mixed if self.unmixed is None else self.unmixed()

    def losses(self, logits: Tensor, loss: Loss) -> Tensor:
        """Return the loss of each mixed image, (batch,), from its logits, (batch, classes)."""
        return loss.per_image(logits, self.labels, self.partner_labels, self.lam)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Draws:
    """All that is random in one pass over the images."""

    order: Tensor
    """(images,), int64."""
    partners: Tensor
    """(images,), int64; the image mixed into each, along `order`."""
    lam: Tensor
    """(images,), float32, along `order`."""
    scaling: Tensor
    """gamma of each image and of each partner, (2, images), float32, along `order`."""
    augmentation: Tensor | None = None
    """What the augmentation has drawn for each image and for each partner, (2, images, numbers),
    along `order`; None: they are not augmented."""
    sizes: list[int]
    """Of the batches along `order`."""

    @classmethod
    def for_training(
        cls, config: TrainConfig, epoch: int, how: Epoch, images: TrainingImages
    ) -> "Draws":
        """Return what training draws for a 0-based epoch, on the device of the images."""
        order = stream(config.seeds, "batch order", epoch).permutation(len(images))
        scaling, mixing = (stream(config.seeds, p, epoch) for p in ("view scaling", "mixing"))
        gamma = scaling.random((2, len(images)), dtype="float32")
        draws = cls._mixed(config, how, torch.from_numpy(order), torch.from_numpy(gamma), mixing)
        augmentation = _augmentation(config, epoch, images)
        return replace(draws, augmentation=augmentation).to(images.labels.device)

    @classmethod
    def for_probing(
        cls, config: TrainConfig, epoch: int, how: Epoch, images: TrainingImages
    ) -> "Draws":
        """Return draws of the same laws from streams that training never uses; images in order."""
        scaling, mixing = (
            stream(config.seeds, p, epoch) for p in ("probe view scaling", "probe mixing")
        )
        gamma = torch.from_numpy(scaling.random((2, len(images)), dtype="float32"))
        return cls._mixed(config, how, torch.arange(len(images)), gamma, mixing).to(
            images.labels.device
        )

    @classmethod
    def _mixed(
        cls,
        config: TrainConfig,
        how: Epoch,
        order: Tensor,
        scaling: Tensor,
        rng: np.random.Generator,
    ) -> "Draws":
        sizes = [len(batch) for batch in torch.split(order, config.batch_size)]
        partners = draw_partners(how.partner, order, sizes, rng)
        if how.lam_scope == "batch":
            lam = draw_lambdas(how.law, len(sizes), rng).repeat_interleave(torch.tensor(sizes))
        else:
            lam = draw_lambdas(how.law, len(order), rng)
        return cls(order=order, partners=partners, lam=lam, scaling=scaling, sizes=sizes)

    def to(self, device: torch.device) -> "Draws":
        """Return the draws on a device."""
        tensors = {name: getattr(self, name) for name in self.__slots__ if name != "sizes"}
        moved = {name: part.to(device) for name, part in tensors.items() if part is not None}
        return Draws(sizes=self.sizes, **moved)


def _augmentation(config: TrainConfig, epoch: int, images: TrainingImages) -> Tensor | None:
    rng = stream(config.seeds, "augmentation", epoch)
    _, *size = images.shape
    drawn = config.data.augment.draw((2, len(images)), (size[0], size[1]), rng)
    return None if drawn is None else torch.from_numpy(drawn)


def batches(images: TrainingImages, draws: Draws, how: Epoch) -> Iterator[Batch]:
    """Yield the batches of one pass; the last holds what is left.

    Args:
        images: What is mixed.
        draws: All that is random, drawn for `how`.
        how: What decides the epoch. If nothing is mixed, partners are not read.
    """
    start = 0
    for size in draws.sizes:
        part = slice(start, start + size)
        start += size
        labels = partner_labels = images.labels[draws.order[part]]
        if how.is_mixed:
            partner_labels = images.labels[draws.partners[part]]
        unmixed = partial(_assembled, images, draws, part, is_mixed=False)
        yield Batch(
            mixed=_assembled(images, draws, part, is_mixed=how.is_mixed),
            unmixed=unmixed if how.is_mixed else None,
            labels=labels,
            partner_labels=partner_labels,
            lam=draws.lam[part],
        )


def proven_kernel(config: TrainConfig, images: TrainingImages, epochs: int) -> Kernel | None:
    """Return the kernel that may assemble the batches of a run in place of PyTorch, if one may.

    It has given the bits of PyTorch for some of the run's own images, mixed by all kinds of weights
    and not mixed, and it takes less to compile than the run saves by it.

    Args:
        config: The run.
        images: Those it trains on.
        epochs: How many are left of it.
    """
    size = math.prod(images.shape)
    if epochs * len(images) * size < _VALUES_WORTH_A_KERNEL:
        return None
    kernel = kernel_for(images)
    if kernel is None:
        return None
    weights = torch.linspace(0, 1, min(len(images), 1 + _VALUES_OF_PROOF // size))
    draws = replace(Draws.for_training(config, 0, Epoch(law=Midpoint()), images), lam=weights)
    part = slice(0, len(weights))
    for is_mixed in (True, False):
        plain, made = (torch.empty(len(weights), *images.shape) for _ in range(2))
        _assemble(images, draws, part, plain, is_mixed=is_mixed)
        kernel.assemble(images, draws, part, made, is_mixed=is_mixed)
        if not torch.equal(plain, made):
            return None
    return kernel


def _assembled(images: TrainingImages, draws: Draws, part: slice, *, is_mixed: bool) -> Tensor:
    """Return images, mixed or not.

    Args:
        images: What is mixed.
        draws: All that is random.
        part: The images, of `draws.order`.
        is_mixed: Whether partners are mixed in.
    """
    count = part.stop - part.start
    out = torch.empty(count, *images.shape, device=images.labels.device)
    if images.kernel is not None:
        images.kernel.assemble(images, draws, part, out, is_mixed=is_mixed)
        return out
    at_a_time = _images_at_a_time(out)
    for first in range(0, count, at_a_time):
        some = slice(first, min(first + at_a_time, count))
        along = slice(part.start + some.start, part.start + some.stop)
        _assemble(images, draws, along, out[some], is_mixed=is_mixed)
    return out


def _images_at_a_time(out: Tensor) -> int:
    """Return how many images a CPU's cache holds through all steps of their assembly."""
    if out.device.type != "cpu":
        return len(out)
    return max(1, _BYTES_AT_A_TIME // (out[0].numel() * out.element_size()))


def _assemble(
    images: TrainingImages, draws: Draws, along: slice, out: Tensor, *, is_mixed: bool
) -> None:
    """Write images, mixed or not, by PyTorch; arguments as for `Kernel.assemble`."""
    drawn = draws.augmentation
    own_drawn, beside_drawn = (None, None) if drawn is None else drawn[:, along].unbind(0)
    order, scaling = draws.order[along], draws.scaling[0, along]
    if not is_mixed:
        images.batch(order, scaling, own_drawn, out=out)
        return
    own = images.batch(order, scaling, own_drawn)
    beside = images.batch(draws.partners[along], draws.scaling[1, along], beside_drawn)
    mix(own, beside, draws.lam[along], out=out)
