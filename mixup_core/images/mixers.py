"""Mixers: which operation mixes each batch of an epoch, with what it has drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mixup_core.images.epoch import Epoch
from mixup_core.images.forward import HiddenMix
from mixup_core.images.saliency import unmeasured
from mixup_core.mixing.lambdas import draw_lambdas
from mixup_core.mixing.operation import Operation


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Mixer:
    """An operation and what it has drawn for one batch."""

    operation: Operation
    drawn: Tensor
    """On the device of the images: one row for the batch, or one for each image."""
    layer: int = 0
    """Hidden layer whose output is mixed; 0: the operation makes the images."""

    def mix(
        self, own: Tensor, beside: Tensor, lam: Tensor, saliency: Callable[[], Tensor] = unmeasured
    ) -> tuple[Tensor, Tensor, HiddenMix | None]:
        """Return the network's input, the weight of each label, and the mixing inside the network.

        Args:
            own: (batch, channels, height, width), float32.
            beside: As `own`, the partners.
            lam: (batch,), float32.
            saliency: Measures what `Operation.mix_salient` takes.
        """
        if self.layer:
            return torch.cat([own, beside]), lam, HiddenMix(layer=self.layer, lam=lam)
        if self.operation.needs_saliency:
            salient = self.operation.mix_salient(own, beside, lam, self.drawn, saliency())
            return *salient, None
        images, weight = self.operation.mix(own, beside, lam, self.drawn)
        return images, weight.expand(len(own)), None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Drawn:
    """The draws for mixing, without the partners."""

    lam: Tensor
    """(images,), float32."""
    mixers: tuple[Mixer | None, ...]
    """The mixer of each batch; None: the batch is not mixed."""
    label_lam: Tensor | None
    """(images,), float32; None: operations say what labels keep."""


def draw_mixing(
    how: Epoch,
    sizes: Sequence[int],
    image_size: tuple[int, int],
    streams: Mapping[str, np.random.Generator],
    device: torch.device | str = "cpu",
) -> Drawn:
    """Return the weights of an epoch and what mixes its batches.

    Whether a batch is mixed, and by which operation, is drawn for each batch, as in timm; boxes and
    masks are drawn for each weight. Every kind of draw has a stream of its own, so that none shifts
    another.

    Args:
        how: What decides the epoch.
        sizes: Of the batches.
        image_size: Height and width.
        streams: `mixing`, `choice`, `operation`, `second` and `label`.
        device: Where the images are. What operations have drawn is copied there at once, for a
            copy in each step would wait for the device; the weights stay on the CPU.
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
    start = 0
    for batch, (size, mixes, second) in enumerate(
        zip(sizes, is_mixed.tolist(), is_second.tolist(), strict=True)
    ):
        part = slice(batch, batch + 1) if per_batch else slice(start, start + size)
        start += size
        if not mixes:
            mixers.append(None)
            continue
        operation, layer = operations[second], operations[second].layer(rows[second][part])
        mixers.append(Mixer(operation=operation, drawn=copied[second][part], layer=layer))
    return Drawn(lam=mixed_by.masked_fill(stays, 1), mixers=tuple(mixers), label_lam=label_lam)


def _rows(
    operation: Operation, lam: Tensor, size: tuple[int, int], rng: np.random.Generator
) -> Tensor:
    return torch.from_numpy(operation.draw(lam.double().numpy(), size, rng))
