"""draw_lambdas: the weights lam of a law as a tensor."""

import numpy as np
import torch
from torch import Tensor

from mixup_core.laws import Law


def draw_lambdas(law: Law, count: int, rng: np.random.Generator) -> Tensor:
    """Return weights lam drawn from a law: (count,), float32, each in [0, 1].

    Args:
        law: A constant law draws nothing.
        count: One for each batch of an epoch or for each image, as `mix.lam_scope` says.
        rng: Source of the draws.
    """
    return torch.from_numpy(law.draw(count, rng).astype(np.float32))
