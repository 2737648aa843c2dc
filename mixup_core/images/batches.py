"""Batches: the images of one epoch as a law mixes them, everything random drawn up front."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mixup_core.images.config import Loss, TrainConfig
from mixup_core.images.views import PADDING, TrainingImages
from mixup_core.laws import Erm, Law
from mixup_core.mixing import draw_lambdas, draw_partners, mix
from mixup_core.seeding import stream

_BYTES_AT_A_TIME = 2**19
"""Of the images that are assembled together on a CPU, both views counted: its second-level cache
holds them through the five passes that make them."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """Some images and what they are mixed with."""

    images: Tensor
    """(batch, channels, height, width), float32: not mixed."""
    mixed: Tensor
    """As `images`; the same tensor under a law that does not mix."""
    labels: Tensor
    """(batch,), int64."""
    partner_labels: Tensor
    """(batch,), int64."""
    lam: Tensor
    """Weight of `images` and `labels`, (batch,), float32, in [0, 1]."""

    def __len__(self) -> int:
        return len(self.labels)

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
    moves: Tensor | None = None
    """Crop and mirroring of each image and of each partner, (2, images, 3), int64, along `order`;
    None: they are not augmented."""
    sizes: list[int]
    """Of the batches along `order`."""

    @classmethod
    def for_training(
        cls, config: TrainConfig, epoch: int, law: Law, images: TrainingImages
    ) -> "Draws":
        """Return what training draws for a 0-based epoch, on the device of the images."""
        order = stream(config.seeds, "batch order", epoch).permutation(len(images))
        scaling, mixing = (stream(config.seeds, p, epoch) for p in ("view scaling", "mixing"))
        gamma = scaling.random((2, len(images)), dtype="float32")
        draws = cls._mixed(config, law, torch.from_numpy(order), torch.from_numpy(gamma), mixing)
        moves = _moves(config, epoch, len(images))
        return replace(draws, moves=moves).to(images.labels.device)

    @classmethod
    def for_probing(
        cls, config: TrainConfig, epoch: int, law: Law, images: TrainingImages
    ) -> "Draws":
        """Return draws of the same laws from streams that training never uses; images in order."""
        scaling, mixing = (
            stream(config.seeds, p, epoch) for p in ("probe view scaling", "probe mixing")
        )
        gamma = torch.from_numpy(scaling.random((2, len(images)), dtype="float32"))
        return cls._mixed(config, law, torch.arange(len(images)), gamma, mixing).to(
            images.labels.device
        )

    @classmethod
    def _mixed(
        cls, config: TrainConfig, law: Law, order: Tensor, scaling: Tensor, rng: np.random.Generator
    ) -> "Draws":
        sizes = [len(batch) for batch in torch.split(order, config.batch_size)]
        partners = draw_partners(config.mix.partner, order, sizes, rng)
        if config.mix.lam_scope == "batch":
            lam = draw_lambdas(law, len(sizes), rng).repeat_interleave(torch.tensor(sizes))
        else:
            lam = draw_lambdas(law, len(order), rng)
        return cls(order=order, partners=partners, lam=lam, scaling=scaling, sizes=sizes)

    def to(self, device: torch.device) -> "Draws":
        """Return the draws on a device."""
        tensors = {name: getattr(self, name) for name in self.__slots__ if name != "sizes"}
        moved = {name: part.to(device) for name, part in tensors.items() if part is not None}
        return Draws(sizes=self.sizes, **moved)


def _moves(config: TrainConfig, epoch: int, num_images: int) -> Tensor | None:
    augment = config.data.augment
    if augment == "none":
        return None
    rng = stream(config.seeds, "augmentation", epoch)
    corner = rng.integers(2 * PADDING + 1, size=(2, num_images, 2))
    mirrored = rng.integers(2, size=(2, num_images, 1)) * (augment == "crop-flip")
    return torch.from_numpy(np.concatenate([corner, mirrored], axis=2))


def batches(images: TrainingImages, draws: Draws, law: Law) -> Iterator[Batch]:
    """Yield the batches of one pass; the last holds what is left.

    Args:
        images: What is mixed.
        draws: All that is random, drawn for `law`.
        law: Under `Erm` no partner is looked at.
    """
    start = 0
    for size in draws.sizes:
        part = slice(start, start + size)
        start += size
        labels = partner_labels = images.labels[draws.order[part]]
        inputs = mixed = torch.empty(size, *images.shape, device=labels.device)
        if law != Erm():
            partner_labels = images.labels[draws.partners[part]]
            mixed = torch.empty_like(inputs)
        at_a_time = _images_at_a_time(inputs)
        for first in range(0, size, at_a_time):
            some = slice(first, min(first + at_a_time, size))
            along = slice(part.start + some.start, part.start + some.stop)
            _assemble(images, draws, along, inputs[some], None if law == Erm() else mixed[some])
        yield Batch(
            images=inputs,
            mixed=mixed,
            labels=labels,
            partner_labels=partner_labels,
            lam=draws.lam[part],
        )


def _images_at_a_time(inputs: Tensor) -> int:
    """Return how many images a CPU's cache holds through all steps of their assembly."""
    if inputs.device.type != "cpu":
        return len(inputs)
    return max(1, _BYTES_AT_A_TIME // (inputs[0].numel() * inputs.element_size()))


def _assemble(
    images: TrainingImages, draws: Draws, along: slice, inputs: Tensor, mixed: Tensor | None
) -> None:
    """Write images and what they are mixed with.

    Args:
        images: What is mixed.
        draws: All that is random.
        along: The images, of `draws.order`.
        inputs: What gets them, not mixed.
        mixed: What gets them mixed; None: no partner is looked at.
    """
    moves = (None, None) if draws.moves is None else draws.moves[:, along].unbind(0)
    images.batch(draws.order[along], draws.scaling[0, along], moves[0], out=inputs)
    if mixed is not None:
        beside = images.batch(draws.partners[along], draws.scaling[1, along], moves[1])
        mix(inputs, beside, draws.lam[along], out=mixed)
