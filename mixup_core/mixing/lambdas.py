"""draw_lambdas: draws mixing weights lam as a tensor."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

from __future__ import annotations

from mixup_core.arrays import Tensor, np, torch
from mixup_core.contracts import weights_of
from mixup_core.laws import Law


def draw_lambdas(law: Law, count: int, rng: np.random.Generator) -> Tensor:
    """Draw independent mixing weights from a law: (count,), float32; checked to be in [0, 1]."""
    return torch.from_numpy(weights_of(law, count, rng).astype(np.float32))
