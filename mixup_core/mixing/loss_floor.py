"""loss_floor: the infimum of the mean loss on linearly mixed images."""

import math
from typing import Literal

import torch
from torch import Tensor

from mixup_core.arrays import Floats
from mixup_core.laws import Law


def loss_floor(
    law: Law, labels: Tensor, partner: Literal["dataset", "permutation"], batch_size: int
) -> float:
    """Return the infimum of the expected mixed loss over all functions, in nats.

    It is `P(y != y') h`, with h the label entropy of the law and y' the partner's label. This
    assumes that no two mixed inputs with different soft labels coincide. Mixed losses of different
    laws can be compared only after this value is subtracted.

    Source: Liu et al. 2023, arXiv:2303.01475, lemma 1, for any Beta law and any class balance.

    Args:
        law: The law in force.
        labels: Labels of all training images, (images,), int64.
        partner: Source of partners.
        batch_size: With `permutation`, one image of each batch on average is its own partner.
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
    """Return PyTorch's digamma function; recorded numbers depend on its last bits."""
    found: Floats = torch.digamma(torch.from_numpy(values)).numpy()
    return found
