"""loss_floor: the lowest possible expected loss on linearly mixed images."""

from __future__ import annotations

import math
from typing import Literal

from mixup_core.arrays import Floats, Tensor, torch
from mixup_core.laws import Law


def loss_floor(
    law: Law, labels: Tensor, partner: Literal["dataset", "permutation"], batch_size: int
) -> float:
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
