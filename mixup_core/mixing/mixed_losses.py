"""Mixed losses: losses of a classifier whose target is mixed from two labels."""

from __future__ import annotations

import math

from mixup_core.arrays import Floats, Tensor, functional, torch
from mixup_core.laws import Law
from mixup_core.mixing.partners import Pairing


def mixed_cross_entropies(
    logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor, smoothing: float
) -> Tensor:
    """Return the cross entropy of each image of a mixed batch: nats, (batch,).

    The target of an image has the weight lam on its label and 1 - lam on the partner's label. Cross
    entropy is linear in the target, so the sum of two hard-label terms is exact.

        loss = lam * CE(logits, labels) + (1 - lam) * CE(logits, partner_labels)

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.
    """
    # Frozen: order of these floating-point operations. After a change, the last bits of new runs
    # differ from stored runs of the same key; `make same-bits BASE=main` fails.
    own, partner = (
        functional.cross_entropy(logits, target, reduction="none", label_smoothing=smoothing)
        for target in (labels, partner_labels)
    )
    return torch.lerp(partner, own, lam.expand_as(own))


def mixed_squared_errors(
    logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor
) -> Tensor:
    """Return the squared error of each image of a mixed batch, (batch,).

    The error is the squared distance between logits (without softmax) and mixed one-hot target:

        loss = sum over classes of (logit - (lam e_y + (1 - lam) e_y'))^2

    Source: Liu et al. 2023, arXiv:2303.01475, for training with the square loss.
    """
    # Not one_hot, which reads the labels and so makes the host wait for the GPU.
    classes = torch.arange(logits.shape[1], device=labels.device)
    own, partner = (
        (part.unsqueeze(1) == classes).to(logits.dtype) for part in (labels, partner_labels)
    )
    weight = lam.expand(len(labels)).unsqueeze(1).to(logits.dtype)
    targets = torch.lerp(partner, own, weight)
    return (logits - targets).square().sum(1)


def loss_floor(law: Law, labels: Tensor, partner: Pairing, batch_size: int) -> float:
    """Return the infimum of the expected mixed cross entropy over all classifiers, in nats.

    The infimum is `P(y != y') h`, where h is the mean entropy of a mixed label of two different
    classes (`Law.label_entropy`), y the label and y' the partner's label. The formula assumes that
    no two mixed inputs with different soft labels coincide. Losses under different laws are
    comparable only after their infimum is subtracted.

    Source: Liu et al. 2023, arXiv:2303.01475, lemma 1, for the uniform law and equally frequent
    classes. The formula here holds for any law and any class frequencies.
    """
    counts = torch.bincount(labels).double()
    total = counts.sum()
    if partner == "dataset":
        differ = 1 - (counts / total).square().sum()
    else:
        same_of_others = (counts * (counts - 1)).sum() / (total * (total - 1)).clamp(min=1)
        own_partner = math.ceil(len(labels) / batch_size) / len(labels)
        differ = (1 - own_partner) * (1 - same_of_others)
    return float(differ) * law.label_entropy(_digamma)


def _digamma(values: Floats) -> Floats:
    """Return PyTorch's digamma function of an array; stored records depend on its last bits."""
    found: Floats = torch.digamma(torch.from_numpy(values)).numpy()
    return found
