"""loss_floor: the least mean loss that any function has on linearly mixed images."""

import math
from typing import Literal, assert_never

import torch
from torch import Tensor

from mixup_core.laws import Beta, Erm, Law, Midpoint


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
