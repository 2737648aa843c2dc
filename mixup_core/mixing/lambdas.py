"""draw_lambdas: draws mixing weights lam as a tensor."""

from __future__ import annotations

from mixup_core.arrays import Tensor, np, torch
from mixup_core.contracts import weights_of
from mixup_core.laws import Law


def draw_lambdas(law: Law, count: int, rng: np.random.Generator) -> Tensor:
    """Draw independent mixing weights from a law: (count,), float32; checked to be in [0, 1].

    Args:
        law: Distribution of the weights; a constant law does not use the generator.
        count: Number of weights: one per batch or one per image of an epoch (`mix.lam_scope`).
        rng: Random generator.
    """
    return torch.from_numpy(weights_of(law, count, rng).astype(np.float32))
