"""SmoothMix: blends the partner into a round spot of the image with a soft edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np, torch
from mixup_core.config.limits import Range
from mixup_core.mixing.masks import draw_centres, masked
from mixup_core.mixing.operation import Operation
from mixup_core.rules import require_order

Width = Annotated[float, Range(1e-6, 1e6)]


@dataclass(frozen=True, kw_only=True, slots=True)
class SmoothMix(Operation):
    """Gives the partner the weight exp(-d^2 / (2 sigma^2)) at distance d from a random pixel.

    sigma is `widest - (widest - narrowest) lam` times the image's height. With the uniform law,
    sigma is uniformly distributed, as in the source. The label weight is the mean weight of the
    image's own pixels.

    Source: Lee et al. 2020, CVPR workshops, SmoothMix with circles. The range of sigma is that of
    OpenMixup's code, which however swaps the weights of the two labels.

    Example:
        In a study file: `mix.operation: smoothmix`.

        >>> import torch
        >>> from mixup_core.mixing.smoothmix import SmoothMix
        >>> own, beside = torch.ones(1, 1, 1, 3), torch.zeros(1, 1, 1, 3)
        >>> spot = torch.tensor([[0.0, 1.0, 1.0]])  # centre in row 0, column 1; sigma = 1
        >>> SmoothMix().mix(own, beside, torch.tensor([0.5]), spot)
        (tensor([[[[0.3935, 0.0000, 0.3935]]]]), tensor([0.2623]))
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "smoothmix"

    narrowest: Width = 0.25
    """sigma at lam = 1, as a fraction of the image's height."""
    widest: Width = 0.5
    """sigma at lam = 0, as a fraction of the image's height."""

    def check(self) -> None:
        require_order(self, "narrowest", "widest")

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        sigma = (self.widest - (self.widest - self.narrowest) * lam) * size[0]
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return np.column_stack([draw_centres(len(lam), size, rng), sigma]).astype(np.float32)

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del lam
        row, column, sigma = drawn.unsqueeze(2).unbind(1)
        weights = [
            torch.exp(-((torch.arange(length, device=own.device) - centre) ** 2) / (2 * sigma**2))
            for length, centre in zip(own.shape[2:], (row, column), strict=True)
        ]
        spot = weights[0].unsqueeze(2) * weights[1].unsqueeze(1)
        return masked(own, beside, 1 - spot)
