"""draw_partners: the image that is mixed into each image of an epoch."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor


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
