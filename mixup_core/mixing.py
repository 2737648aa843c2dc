"""What a law does to a batch: weights, partners, mixed images and their loss."""

import math
from collections.abc import Sequence
from typing import Literal, assert_never

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.weights import draw_weights


def draw_lambdas(law: Law, count: int, rng: np.random.Generator) -> Tensor:
    """Return weights lam drawn from a law: (count,), float32, each in [0, 1].

    Args:
        law: ERM and midpoint draw nothing: lam is 1 and 1/2.
        count: One for each batch of an epoch or for each image, as `mix.lam_scope` says.
        rng: Source of a Beta law's draws.
    """
    return torch.from_numpy(draw_weights(law, count, rng).astype(np.float32))


def draw_partners(
    partner: Literal["dataset", "permutation"],
    order: Tensor,
    batch_sizes: Sequence[int],
    rng: np.random.Generator,
) -> Tensor:
    """Return the image mixed into each image of an epoch: (images,), int64.

    Args:
        partner: `dataset` draws uniformly over all images with replacement, so an image may meet
            itself; `permutation` permutes each batch.
        order: (images,), int64; the images in the order of the epoch.
        batch_sizes: Length of each batch along `order`.
        rng: Source of the draws.
    """
    if partner == "dataset":
        return torch.from_numpy(rng.integers(len(order), size=len(order)))
    batches = torch.split(order, list(batch_sizes))
    return torch.cat([batch[torch.from_numpy(rng.permutation(len(batch)))] for batch in batches])


def mix(
    images: Tensor, partner_images: Tensor, lam: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Return `lam * images + (1 - lam) * partner_images`.

    Args:
        images: (batch, ...), float.
        partner_images: As `images`.
        lam: Weight of `images`, in [0, 1]; () for one weight per batch, (batch,) for one each.
        out: Where it is written, if anywhere.
    """
    weight = lam.reshape(lam.shape + (1,) * (images.dim() - 1)) if lam.dim() else lam
    return torch.lerp(partner_images, images, weight, out=out)


def mixed_cross_entropy(
    logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor
) -> Tensor:
    """Return the mean of `mixed_cross_entropies` over the batch, shape ()."""
    return mixed_cross_entropies(logits, labels, partner_labels, lam).mean()


def mixed_cross_entropies(
    logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor
) -> Tensor:
    """Return the cross entropy of each image of a mixed batch: nats, (batch,).

    Each target is lam on the label and 1 - lam on the partner's label. Cross entropy is linear in
    its target, so the sum of two hard-label terms is exact, not an approximation.

        loss = lam * CE(logits, labels) + (1 - lam) * CE(logits, partner_labels)

    At lam = 1/2 this is label smoothing, pair by pair: half of the mass goes to one other class.

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.

    Args:
        logits: (batch, classes), float.
        labels: (batch,), int64, each in [0, classes).
        partner_labels: (batch,), as `labels`, for the images mixed in.
        lam: Weight of `labels`, in [0, 1]; () for one weight per batch, (batch,) for one each.
    """
    own = cross_entropy(logits, labels, reduction="none")
    partner = cross_entropy(logits, partner_labels, reduction="none")
    return torch.lerp(partner, own, lam.expand_as(own))


def mixed_squared_errors(
    logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor
) -> Tensor:
    """Return the squared error of each image of a mixed batch, (batch,).

    It is the squared distance of the logits, with no softmax, from the mixed one-hot target:

        loss = sum over classes of (logit - (lam e_y + (1 - lam) e_y'))^2

    Source: Liu et al. 2023, arXiv:2303.01475, for training with the square loss.

    Args:
        logits: (batch, classes), float.
        labels: (batch,), int64, each in [0, classes).
        partner_labels: (batch,), as `labels`, for the images mixed in.
        lam: As for `mixed_cross_entropies`.
    """
    classes = torch.arange(logits.shape[1], device=labels.device)  # one_hot would look at labels
    own, partner = (
        (part.unsqueeze(1) == classes).to(logits.dtype) for part in (labels, partner_labels)
    )
    weight = lam.expand(len(labels)).unsqueeze(1).to(logits.dtype)
    targets = torch.lerp(partner, own, weight)
    return (logits - targets).square().sum(1)


def label_entropy(law: Law) -> float:
    """Return the mean entropy of a label mixed from two classes, in nats: ERM 0, midpoint ln 2.

    For Beta(a, a) it is psi(2 a + 1) - psi(a + 1), psi the digamma function; 1/2 at a = 1. That of
    `mixup_core.weights`, but for the last bits, which enter what is recorded.
    """
    match law:
        case Erm():
            return 0.0
        case Midpoint():
            return math.log(2)
        case Beta(alpha=alpha):
            shapes = torch.tensor([2 * alpha + 1, alpha + 1], dtype=torch.float64)
            upper, lower = torch.digamma(shapes)
            return float(upper - lower)
        case _:
            assert_never(law)


def loss_floor(
    law: Law, labels: Tensor, partner: Literal["dataset", "permutation"], batch_size: int
) -> float:
    """Return the infimum of the expected mixed loss over all functions, in nats.

    It is `P(y != y') * label_entropy(law)`, y' the partner's label, as long as no two mixed inputs
    with different soft labels coincide. Mixed losses compare across laws only as excess over it.

    Source: Liu et al. 2023, arXiv:2303.01475, lemma 1, for any Beta law and any class balance.

    Args:
        law: The law in force.
        labels: (images,), int64; all training labels.
        partner: Where partners come from.
        batch_size: With `permutation`, one image of each batch is expected to meet itself.
    """
    counts = torch.bincount(labels).double()
    total = counts.sum()
    if partner == "dataset":
        differ = 1 - (counts / total).square().sum()
    else:
        same_of_others = (counts * (counts - 1)).sum() / (total * (total - 1)).clamp(min=1)
        own_partner = math.ceil(len(labels) / batch_size) / len(labels)
        differ = (1 - own_partner) * (1 - same_of_others)
    return float(differ) * label_entropy(law)
