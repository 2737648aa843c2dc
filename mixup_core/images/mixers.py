"""Mixers: draw the mixing operation of each batch of an epoch, with its random values."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mixup_core.contracts import ContractError, require_mixed, weights_of
from mixup_core.images.epoch import Epoch
from mixup_core.images.forward import HiddenMix
from mixup_core.images.saliency import unmeasured
from mixup_core.laws import Law
from mixup_core.mixing.operation import Operation


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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Drawn:
    """Mixing weights and operations of one epoch; `Draws` adds order, partners and augmentation."""

    lam: Tensor
    """Weight of each image, (images,), float32."""
    mixers: tuple[Mixer | None, ...]
    """Mixer of each batch; None if the batch is not mixed."""
    label_lam: Tensor | None
    """Weight of each label, (images,), float32; None: the operations determine the label weights.
    """


def draw_mixing(
    how: Epoch,
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
    each = torch.tensor(sizes)
    per_batch = how.lam_scope == "batch"
    count = len(sizes) if per_batch else sum(sizes)

    def of_images(weights: Tensor) -> Tensor:
        return weights.repeat_interleave(each) if per_batch else weights

    lam = draw_lambdas(how.law, count, streams["mixing"])
    if not how.is_mixed:
        return Drawn(lam=of_images(lam), mixers=(None,) * len(sizes), label_lam=None)
    chances = streams["choice"].random((len(sizes), 2))
    is_mixed = torch.from_numpy(chances[:, 0] < how.probability)
    is_second = torch.zeros_like(is_mixed)
    rows = [_rows(how.operation, lam, image_size, streams["operation"])]
    mixed_by = of_images(lam)
    if how.second is not None:
        is_second = torch.from_numpy(chances[:, 1] < how.second_probability)
        other = draw_lambdas(how.second_law or how.law, count, streams["second"])
        rows.append(_rows(how.second, other, image_size, streams["second"]))
        mixed_by = of_images(other).where(is_second.repeat_interleave(each), mixed_by)
    stays = ~is_mixed.repeat_interleave(each)
    label_lam = None
    if how.label_law is not None:
        label_lam = of_images(draw_lambdas(how.label_law, count, streams["label"]))
        label_lam = label_lam.masked_fill(stays, 1)
    operations = [how.operation, how.second or how.operation]
    copied = [each.to(device) for each in rows]
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
    return Drawn(lam=mixed_by.masked_fill(stays, 1), mixers=tuple(mixers), label_lam=label_lam)


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
