"""ResizeMix: pastes the whole partner, scaled down, into a box of the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np, torch
from mixup_core.config.limits import Range
from mixup_core.mixing.masks import boxes, draw_centres, masked, outside, sides
from mixup_core.mixing.operation import Operation
from mixup_core.rules import require_order

Scale = Annotated[float, Range(0, 1, "(]")]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResizeMix(Operation):
    """Scales the partner down into a box of the image; the label weight is the area outside it.

    The sides of the box are `smallest + (largest - smallest) (1 - lam)` times those of the image.
    With the uniform law this factor is uniform in [smallest, largest], as in the source. The centre
    of the box is a uniformly random pixel. A box that crosses the border is clipped and still shows
    the whole partner (nearest-neighbour sampling).

    Source: Qin et al. 2020, arXiv:2012.11101, section 3.

    Example:
        In a study file: `mix.operation: resizemix`.

        >>> import torch
        >>> from mixup_core.mixing.resizemix import ResizeMix
        >>> own, beside = torch.ones(1, 1, 2, 4), torch.zeros(1, 1, 2, 4)
        >>> box = torch.tensor([[0, 1, 0, 2]])  # row 0, columns 0 and 1
        >>> ResizeMix().mix(own, beside, torch.tensor([0.5]), box)
        (tensor([[[[0., 0., 1., 1.],
                  [1., 1., 1., 1.]]]]), tensor([0.7500]))
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "resizemix"

    smallest: Scale = 0.1
    """Side of the box at lam = 1, as a fraction of the image's side."""
    largest: Scale = 0.8
    """Side of the box at lam = 0, as a fraction of the image's side."""

    def check(self) -> None:
        require_order(self, "smallest", "largest")

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        share = self.smallest + (self.largest - self.smallest) * (1 - lam)
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return boxes(draw_centres(len(lam), size, rng), sides(share, size), size)

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        del lam
        ranges = drawn.view(-1, 2, 2)
        indices = []
        for axis, length in enumerate(own.shape[2:]):
            first, end = (part.unsqueeze(1) for part in ranges[:, axis].unbind(1))
            place = (torch.arange(length, device=own.device) - first) * length
            found = torch.div(place, (end - first).clamp(min=1), rounding_mode="floor")
            indices.append(found.clamp(0, length - 1).expand(len(own), -1))
        rows, columns = indices
        image = torch.arange(len(own), device=own.device)[:, None, None]
        # Indexing puts the channels last: (batch, height, width, channels).
        resized = beside[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        return masked(own, resized, outside(drawn, own))
