"""Mixed losses: losses of a classifier whose target is mixed from two labels."""

from __future__ import annotations

from mixup_core.arrays import Tensor, functional, torch


def mixed_cross_entropies(
    logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Return the cross entropy of each image of a mixed batch: nats, (batch,).

    The target of an image has the weight lam on its label and 1 - lam on the partner's label. Cross
    entropy is linear in the target, so the sum of two hard-label terms is exact.

        loss = lam * CE(logits, labels) + (1 - lam) * CE(logits, partner_labels)

    Source: Zhang et al. 2018, arXiv:1710.09412, section 2.
    """
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
