"""OBJECTIVES: tag to what a step minimises on a batch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mixup_core.images.batches import Batch
from mixup_core.images.choices.objectives import Filter, Objective, Plain, RegMixup
from mixup_core.images.losses import PerImage

Forward = Callable[[Tensor], Tensor]
"""Images, (batch, channels, height, width), to logits, (batch, classes), float32."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Minimised:
    """What an objective is on a batch."""

    loss: Tensor
    """(), float32: the value whose gradient a step follows."""
    measured: Mapping[str, Tensor]
    """Further means over the batch, each (), by the name their record has after `train/`."""


def plain(
    objective: Plain, batch: Batch, student: Forward, per_image: PerImage, teacher: Forward | None
) -> Minimised:
    """Return the mean loss of the mixed images."""
    del objective, teacher
    return Minimised(loss=_mixed(batch, student(batch.mixed), per_image).mean(), measured={})


def reg_mixup(
    objective: RegMixup,
    batch: Batch,
    student: Forward,
    per_image: PerImage,
    teacher: Forward | None,
) -> Minimised:
    """Return the mean loss of the images and, weighted, of the mixed ones; one pass for both."""
    del teacher
    own, mixed = student(torch.cat([batch.images, batch.mixed])).chunk(2)
    own_loss = per_image(own, batch.labels, batch.labels, torch.ones_like(batch.lam)).mean()
    loss = own_loss + objective.eta * _mixed(batch, mixed, per_image).mean()
    return Minimised(loss=loss / 2 if objective.reduction == "mean" else loss, measured={})


def filtered(
    objective: Filter, batch: Batch, student: Forward, per_image: PerImage, teacher: Forward | None
) -> Minimised:
    """Return the loss of the images that are kept, and the fractions that are kept and low.

    Raises:
        ValueError: If there is no teacher.
    """
    if teacher is None:
        raise ValueError(f"`a filter has a teacher` must hold, got ({objective=}).")
    losses = _mixed(batch, student(batch.mixed), per_image)
    with torch.no_grad():
        ahead = _mixed(batch, teacher(batch.mixed), per_image) - losses
        low = (ahead <= objective.threshold).float()
        kept = {"low": low, "high": 1 - low, "all": torch.ones_like(low)}[objective.keep]
        fraction = kept.mean()
        weight = kept
        if objective.norm == "kept":
            weight = kept * len(batch) / kept.sum().clamp(min=1)
    return Minimised(
        loss=(losses * weight).mean(),
        measured={"kept_fraction": fraction, "low_fraction": low.mean()},
    )


OBJECTIVES: Mapping[str, Callable[[Any, Batch, Forward, PerImage, Forward | None], Minimised]] = {
    "plain": plain,
    "regmixup": reg_mixup,
    "filter": filtered,
}
"""Tag of `mixup_core.images.choices.objectives` to function of (objective, batch, network in
training, loss of each image, network of the teacher if there is one)."""


def floor(objective: Objective, mixed_floor: float) -> float | None:
    """Return the infimum of the mean of an objective over all functions; None if none is known.

    Args:
        objective: In force in an epoch.
        mixed_floor: Infimum of the mean loss of mixed images.
    """
    match objective:
        case Plain() | Filter(keep="all"):
            return mixed_floor
        case RegMixup(eta=eta, reduction=reduction):
            return eta * mixed_floor / (2 if reduction == "mean" else 1)
        case _:
            return None


def _mixed(batch: Batch, logits: Tensor, per_image: PerImage) -> Tensor:
    return per_image(logits, batch.labels, batch.partner_labels, batch.lam)
