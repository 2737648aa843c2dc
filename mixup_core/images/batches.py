"""Batches: the mixed images of one epoch. All random values are drawn at the start of the epoch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from mixup_core.contracts import ContractError, require_mixed, weights_of
from mixup_core.images.epoch import MIXING_STREAMS, Epoch, RunSettings
from mixup_core.images.forward import Batch, HiddenMix, Saliency, unmeasured
from mixup_core.images.views import TrainingImages
from mixup_core.laws import Law
from mixup_core.mixing.linear import mix
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import EpochOrder
from mixup_core.seeding import Purpose, stream


def draw_lambdas(law: Law, count: int, rng: np.random.Generator) -> Tensor:
    """Draw independent mixing weights from a law: (count,), float32; checked to be in [0, 1]."""
    return torch.from_numpy(weights_of(law, count, rng).astype(np.float32))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Mixer:
    """A mixing operation together with its random values for one batch."""

    operation: Operation
    drawn: Tensor
    """Random values of the operation, on the device of the images: one row for the batch, or one
    row for each image.
    """
    layer: int = 0
    """Hidden layer whose output is mixed; 0: the images are mixed."""
    is_checked: bool = True
    """True if `mix` checks the shapes that the operation returns."""

    def mix(
        self, own: Tensor, beside: Tensor, lam: Tensor, saliency: Callable[[], Tensor] = unmeasured
    ) -> tuple[Tensor, Tensor, HiddenMix | None]:
        """Mix a batch of images with their partners."""
        if self.layer:
            return torch.cat([own, beside]), lam, HiddenMix(layer=self.layer, lam=lam)
        if self.operation.needs_saliency:
            images, weight = self.operation.mix_salient(own, beside, lam, self.drawn, saliency())
        else:
            images, weight = self.operation.mix(own, beside, lam, self.drawn)
        if self.is_checked:
            require_mixed(self.operation, own, images, weight)
        return images, weight.expand(len(own)), None


class Drawn(NamedTuple):
    """Mixing weights and operations of one epoch; see the fields of `Draws`."""

    lam: Tensor
    mixers: tuple[Mixer | None, ...]
    label_lam: Tensor | None = None


def draw_mixing(
    settings: Epoch,
    sizes: Sequence[int],
    image_size: tuple[int, int],
    streams: Mapping[str, np.random.Generator],
    device: torch.device | str = "cpu",
) -> Drawn:
    """Draw the mixing weights of an epoch and the operation of each batch.

    Whether a batch is mixed, and by which operation, is drawn per batch, as in timm. Mixing weights
    and their boxes or masks are drawn per batch or per image (`mix.lam_scope`). Each kind of
    draw has its own random stream, so that more draws of one kind do not change those of another.
    """
    counts = torch.tensor(sizes)
    per_batch = settings.lam_scope == "batch"
    count = len(sizes) if per_batch else sum(sizes)

    def of_images(weights: Tensor) -> Tensor:
        return weights.repeat_interleave(counts) if per_batch else weights

    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    lam = draw_lambdas(settings.law, count, streams["mixing"])
    if not settings.is_mixed:
        return Drawn(of_images(lam), (None,) * len(sizes))
    chances = streams["choice"].random((len(sizes), 2))
    is_mixed = torch.from_numpy(chances[:, 0] < settings.probability)
    is_second = torch.zeros_like(is_mixed)
    rows = [_rows(settings.operation, lam, image_size, streams["operation"])]
    mixed_by = of_images(lam)
    if settings.second is not None:
        is_second = torch.from_numpy(chances[:, 1] < settings.second_probability)
        other = draw_lambdas(settings.second_law or settings.law, count, streams["second"])
        rows.append(_rows(settings.second, other, image_size, streams["second"]))
        mixed_by = of_images(other).where(is_second.repeat_interleave(counts), mixed_by)
    stays = ~is_mixed.repeat_interleave(counts)
    label_lam = None
    if settings.label_law is not None:
        label_lam = of_images(draw_lambdas(settings.label_law, count, streams["label"]))
        label_lam = label_lam.masked_fill(stays, 1)
    operations = [settings.operation, settings.second or settings.operation]
    copied = [drawn.to(device) for drawn in rows]
    mixers: list[Mixer | None] = []
    known, start = set[tuple[bool, int]](), 0
    for batch, (size, mixes, second) in enumerate(
        zip(sizes, is_mixed.tolist(), is_second.tolist(), strict=True)
    ):
        part = slice(batch, batch + 1) if per_batch else slice(start, start + size)
        start += size
        if not mixes:
            mixers.append(None)
            continue
        operation, layer = operations[second], operations[second].layer(rows[second][part])
        drawn, is_new = copied[second][part], (second, size) not in known
        known.add((second, size))
        mixers.append(Mixer(operation=operation, drawn=drawn, layer=layer, is_checked=is_new))
    return Drawn(mixed_by.masked_fill(stays, 1), tuple(mixers), label_lam)


def _rows(
    operation: Operation, lam: Tensor, size: tuple[int, int], rng: np.random.Generator
) -> Tensor:
    if reason := operation.unfit(size):
        raise ValueError(f"{reason}, got ({size=}).")
    rows = operation.draw(lam.double().numpy(), size, rng)
    if len(rows) != len(lam):
        raise ContractError(
            operation, f"returned {len(rows)} rows from `draw` for {len(lam)} weights"
        )
    return torch.from_numpy(rows)


_BYTES_AT_A_TIME = 2**19
"""Bytes of images (with both views) that a CPU prepares at a time, so that they stay in its level-2
cache while they are gathered, normalised, scaled and mixed.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Draws:
    """All random values of one pass over the training images."""

    order: Tensor
    """Indices of the images in the order of use, (images,), int64. The other fields follow this
    order.
    """
    partners: Tensor
    """Index of each image's partner, (images,), int64."""
    lam: Tensor
    """Weight of each image, (images,), float32."""
    scaling: Tensor
    """Weight gamma of an image itself, in [0, 1); its second view (`data.views`) has the weight
    1 - gamma. There is one gamma for each image and one for each partner, (2, images), float32.
    """
    augmentation: Tensor | None = None
    """Random values of the augmentation, for images and for partners, (2, images, values per
    image). None: no augmentation.
    """
    sizes: list[int]
    """Number of images in each batch."""
    mixers: tuple[Mixer | None, ...]
    """Mixer of each batch; None if the batch is not mixed."""
    label_lam: Tensor | None = None
    """Weight of each label, (images,), float32, if it is drawn independently of `lam`; else None.
    """

    @classmethod
    def for_training(cls, config: RunSettings, epoch: int, images: TrainingImages) -> "Draws":
        """Draw the random values of a training epoch, such as order and partners of the images."""
        order = stream(config.seeds, "batch order", epoch).permutation(len(images))
        draws = cls._mixed(config, epoch, images, torch.from_numpy(order))
        augment, shape = config.data.augment, (2, len(images))
        rng = stream(config.seeds, "augmentation", epoch)
        drawn = augment.draw(shape, images.shape[1:], rng)
        if drawn is None and augment.changes_images:
            drawn = np.empty((*shape, 0))
        values = None if drawn is None else torch.from_numpy(drawn)
        return replace(draws, augmentation=values).to(images.labels.device)

    @classmethod
    def for_probing(
        cls, config: RunSettings, epoch: int, images: TrainingImages, draw: int = 0
    ) -> "Draws":
        """Draw the random values of a pass in which a probe measures the network."""
        draws = cls._mixed(config, epoch, images, torch.arange(len(images)), draw, "probe ")
        return draws.to(images.labels.device)

    @classmethod
    def _mixed(  # noqa: PLR0913  no two arguments belong together
        cls,
        config: RunSettings,
        epoch: int,
        images: TrainingImages,
        order: Tensor,
        draw: int = 0,
        prefix: str = "",
    ) -> "Draws":
        def rng(purpose: str) -> np.random.Generator:
            place = epoch + _DRAWS_APART * draw
            return stream(config.seeds, cast("Purpose", prefix + purpose), place)

        settings = config.in_epoch(epoch)
        sizes = [len(batch) for batch in torch.split(order, config.batch_size)]
        ordered = EpochOrder(indices=order, batch_sizes=sizes, shown=images.unaugmented)
        gamma = rng("view scaling").random((2, len(images)), "float32")
        streams = {kind: rng(purpose) for kind, purpose in MIXING_STREAMS.items()}
        partners = settings.partner.draw(ordered, streams["mixing"])
        drawn = draw_mixing(settings, sizes, images.shape[1:], streams, images.labels.device)
        scaling = torch.from_numpy(gamma)
        return cls(order=order, partners=partners, scaling=scaling, sizes=sizes, **drawn._asdict())

    def to(self, device: torch.device) -> "Draws":
        """Return the random values of this pass, with their tensors on a device."""
        parts = {name: getattr(self, name) for name in self.__slots__}
        moved: dict[str, Any] = {
            name: part.to(device) for name, part in parts.items() if isinstance(part, Tensor)
        }
        return replace(self, **moved)

    def of_partners(self) -> "Draws":
        """Return the random values of this pass with each image and its partner exchanged."""
        augmentation = None if self.augmentation is None else self.augmentation.flip(0)
        return replace(
            self,
            order=self.partners,
            partners=self.order,
            scaling=self.scaling.flip(0),
            augmentation=augmentation,
        )


_DRAWS_APART = 2**32
"""Distance between the random streams of successive draws, in epochs; larger than any run."""


def batches(
    images: TrainingImages, draws: Draws, saliency: Saliency = unmeasured
) -> Iterator[Batch]:
    """Yield the mixed batches of one pass over the training images; the last can be smaller."""
    start, exchanged = 0, None
    for size, mixer in zip(draws.sizes, draws.mixers, strict=True):
        part = slice(start, start + size)
        start += size
        order, weight, hidden = draws.order[part], draws.lam[part], None
        labels = partner_labels = images.labels[order]
        unmixed = None
        if mixer is None:
            mixed = _assembled(images, draws, part, is_mixed=False)
        else:
            partner_labels = images.labels[draws.partners[part]]
            unmixed = partial(_assembled, images, draws, part, is_mixed=False)
            if mixer.operation.is_linear:
                mixed = _assembled(images, draws, part, is_mixed=True)
            else:
                exchanged = exchanged or draws.of_partners()
                own, other = unmixed(), _assembled(images, exchanged, part, is_mixed=False)
                unmixed = partial(_same, own)
                salient = partial(_both, saliency, (own, labels), (other, partner_labels))
                mixed, weight, hidden = mixer.mix(own, other, weight, salient)
            if draws.label_lam is not None:
                weight = draws.label_lam[part]
        yield Batch(
            mixed=mixed,
            unmixed=unmixed,
            labels=labels,
            partner_labels=partner_labels,
            lam=weight,
            is_test=None if images.is_test is None else images.is_test[order],
            hidden=hidden,
        )


def _both(saliency: Saliency, *parts: tuple[Tensor, Tensor]) -> Tensor:
    return torch.stack([saliency(*part) for part in parts])


def _same(images: Tensor) -> Tensor:
    return images


def _assembled(images: TrainingImages, draws: Draws, part: slice, *, is_mixed: bool) -> Tensor:
    """Return prepared images, (images, channels, height, width), mixed if `is_mixed`."""
    count = part.stop - part.start
    out = torch.empty(count, *images.shape, device=images.labels.device)
    at_a_time = count
    if out.device.type == "cpu":  # all steps of assembly stay within its cache
        at_a_time = max(1, _BYTES_AT_A_TIME // (out[0].numel() * out.element_size()))
    for first in range(0, count, at_a_time):
        some = slice(first, min(first + at_a_time, count))
        along = slice(part.start + some.start, part.start + some.stop)
        _assemble(images, draws, along, out[some], is_mixed=is_mixed)
    return out


def _assemble(
    images: TrainingImages, draws: Draws, along: slice, out: Tensor, *, is_mixed: bool
) -> None:
    """Write prepared images of an epoch into `out`, mixed if `is_mixed`."""
    drawn = draws.augmentation
    own_drawn, beside_drawn = (None, None) if drawn is None else drawn[:, along].unbind(0)
    order, scaling = draws.order[along], draws.scaling[0, along]
    if not is_mixed:
        images.batch(order, scaling, own_drawn, out=out)
        return
    own = images.batch(order, scaling, own_drawn)
    beside = images.batch(draws.partners[along], draws.scaling[1, along], beside_drawn)
    mix(own, beside, draws.lam[along], out=out)
