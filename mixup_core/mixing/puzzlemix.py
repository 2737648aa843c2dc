"""PuzzleMix: the parts of both images on which the loss depends most, moved together."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mixup_core.mixing.operation import Operation
from mixup_core.rules import require
from mixup_core.tree.limits import Count, NonNegative, Range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

GRIDS = (2, 4, 8, 16)
"""Blocks along a side: one of those that divide it is drawn."""
_TINY = 1e-8


@dataclass(frozen=True, kw_only=True, slots=True)
class PuzzleMix(Operation):
    """Blocks of two images, chosen by the saliency of both and moved to where they are shown.

    The mask takes the value of least cost in each block: the saliency it hides, jumps of the mask
    and of pixels between neighbours, and its distance from lam. Then the blocks of each image move,
    so that salient ones are shown. Label weight: the mean of the mask. Saliency is the root mean
    square over channels of the gradient of the loss at a pixel, of the network in evaluation mode:
    two further passes for each batch. No floor of the loss is known.

    It differs from the authors' code in this: both minima are exact (theirs are approximate: swaps
    of two labels, and rounds of a matching that may lose blocks); jumps of pixels count in the
    units of the network's input, and a jump is never rewarded; adversarial noise and the loss on
    clean images are left out. Where no network is at hand, pixels tell the saliency
    (`mixup_core.mixing.saliency`). The minima are found on the CPU: a GPU waits for them.

    Source: Kim, Choo and Song 2020, arXiv:2009.06962, sections 3 and 4.
    """

    tag: ClassVar = "puzzlemix"
    needs_saliency: ClassVar = True

    levels: Annotated[int, Range(2, 4)] = 3
    """Values that the mask may take: 3 stands for 0, 1/2 and 1."""
    mask_smoothness: NonNegative = 1.2
    """beta of the source: weight of jumps of the mask."""
    pixel_smoothness: NonNegative = 0.125
    """gamma of the source: weight of jumps of pixels, as a multiple of beta. The authors' 0.5 is
    for pixels in [0, 1]; those that a network takes are spread about four times as far."""
    prior: NonNegative = 0.2
    """eta of the source: weight of the distance from lam."""
    neighbourhood: Count = 4
    """Side, in pixels, of the squares whose means are compared across the borders of blocks."""
    moves: bool = True
    """True if blocks are moved."""
    transport_cost: NonNegative = 0.8
    """Cost of moving a block over the whole side of the image, squared distances in between."""
    transport_size: Count = 4
    """Side of the blocks that are moved, in pixels, where it divides those of the mask."""

    def draw(
        self, lam: "NDArray[np.float64]", size: tuple[int, int], rng: "np.random.Generator"
    ) -> "NDArray[Any]":
        """Return the blocks along a side for each weight, (weights, 1)."""
        import numpy as np

        known = [count for count in GRIDS if all(side % count == 0 for side in size)]
        require(bool(known), "images need even sides for puzzlemix", _Size(size), "size")
        return np.asarray(known)[rng.integers(len(known), size=(len(lam), 1))]

    def mix(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return the images and the mean of each mask, with saliency as pixels tell it."""
        import torch

        from mixup_core.mixing.saliency import fine_grained

        saliency = torch.stack([fine_grained(own), fine_grained(beside)])
        return self.mix_salient(own, beside, lam, drawn, saliency.clamp(min=0))

    def mix_salient(
        self, own: "Tensor", beside: "Tensor", lam: "Tensor", drawn: "Tensor", saliency: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Return the images and the mean of each mask."""
        import torch

        counts = drawn[:, 0].expand(len(own)).tolist()
        mixed, weight = torch.empty_like(own), torch.empty_like(lam)
        for count in sorted(set(counts)):
            rows = [row for row, each in enumerate(counts) if each == count]
            some = torch.tensor(rows).to(own.device)
            pair = torch.stack([own[some], beside[some]])
            mask, pair = self._solved(pair, saliency[:, some], lam[some], count)
            scale = [side // count for side in own.shape[2:]]
            spread = mask.repeat_interleave(scale[0], 1).repeat_interleave(scale[1], 2)
            mixed[some] = torch.lerp(pair[1], pair[0], spread.unsqueeze(1))
            weight[some] = mask.mean(dim=(1, 2))
        return mixed, weight

    def _solved(
        self, pair: "Tensor", saliency: "Tensor", lam: "Tensor", count: int
    ) -> "tuple[Tensor, Tensor]":
        """Return the masks, (batch, count, count), and both images with their blocks moved.

        Args:
            pair: Images and partners, (2, batch, channels, height, width).
            saliency: (2, batch, height, width).
            lam: (batch,).
            count: Number of blocks along a side.
        """
        import numpy as np
        import torch

        from mixup_core.mixing.patches import arranged
        from mixup_core.mixing.transport import least_cost_transport

        blocks = [side // count for side in pair.shape[3:]]
        is_finer = all(side % self.transport_size == 0 for side in blocks)
        finer = [side // self.transport_size if is_finer else 1 for side in blocks]
        grid = count * finer[0], count * finer[1]
        coarse, fine = _shares(saliency, (count, count)), _shares(saliency, grid)
        costs, below, beside = self._costs(pair, coarse, count)
        read = _on_host(lam, fine.movedim(0, 1), costs, below, beside)
        of_images = zip(read[0], *read[2:], strict=True)
        mask = np.stack([self.mask(*of_image) for of_image in of_images])
        if self.moves:
            shown = np.stack([mask, 1 - mask]).repeat(finer[0], 2).repeat(finer[1], 3)
            shares = read[1].swapaxes(0, 1).reshape(-1, *grid)
            pairs = zip(shares, shown.reshape(-1, *grid), strict=True)
            moves = [least_cost_transport(*each, self.transport_cost) for each in pairs]
            sources = torch.from_numpy(np.stack(moves)).to(pair.device)
            pair = arranged(pair.flatten(0, 1), sources, grid).view_as(pair)
        return torch.from_numpy(mask).to(pair), pair

    def _costs(
        self, pair: "Tensor", shares: "Tensor", count: int
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """Return the cost of showing either image in each block, and the weights of label changes.

        Returns:
            Costs of showing only the own image and only the partner, (batch, 2, count, count);
            weights of changes to the block below and to the block on the right, both (batch, ...).
        """
        import torch

        beta = self.mask_smoothness / count / 16
        costs = shares.flip(0).clone()
        weights = []
        for axis in (0, 1):
            jumps = beta * self.pixel_smoothness * _jumps(pair, count, self.neighbourhood, axis)
            # jumps[a, b]: image a before the border, image b behind it
            before = costs.narrow(2 + axis, 0, count - 1)
            before += jumps.mean(dim=1)
            behind = costs.narrow(2 + axis, 1, count - 1)
            behind += jumps.mean(dim=0)
            unlike = (jumps[0, 1] + jumps[1, 0] - jumps[0, 0] - jumps[1, 1]) / 2
            weights.append((unlike + beta).clamp(min=0))
        return torch.movedim(costs, 0, 1), weights[0], weights[1]

    def mask(
        self,
        lam: "NDArray[np.float64]",
        costs: "NDArray[np.float64]",
        below: "NDArray[np.float64]",
        beside: "NDArray[np.float64]",
    ) -> "NDArray[np.float64]":
        """Return the cheapest mask, (count, count): 1 shows the own image.

        Args:
            lam: Weight of the own image, ().
            costs: Costs of showing only the own image and only the partner, (2, count, count).
            below: Weight of changes to the block below, (count - 1, count).
            beside: Weight of changes to the block on the right, (count, count - 1).
        """
        import numpy as np

        from mixup_core.mixing.least_cost_labels import least_cost_labels

        last = self.levels - 1
        labels = np.arange(self.levels)  # 0 shows the own image alone
        chance = np.array([math.comb(last, k) for k in labels])
        chance = chance * lam ** (last - labels) * (1 - lam) ** labels
        prior = -self.prior * np.log(chance + _TINY) / costs[0].size
        share = labels / last
        each = (1 - share) * costs[0][..., None] + share * costs[1][..., None] + prior
        return 1 - least_cost_labels(each, below, beside) / last


@dataclass(frozen=True, slots=True)
class _Size:
    size: tuple[int, int]


def _on_host(*parts: "Tensor") -> "list[NDArray[np.float64]]":
    """Copy tensors of equal first length to the CPU in one transfer; return arrays."""
    import numpy as np
    import torch

    flat = [part.flatten(1) if part.dim() > 1 else part[:, None] for part in parts]
    whole = torch.cat(flat, dim=1).double().cpu().numpy()
    ends = np.cumsum([part.shape[1] for part in flat])[:-1]
    split = np.split(whole, ends, axis=1)
    return [found.reshape(part.shape) for found, part in zip(split, parts, strict=True)]


def _shares(saliency: "Tensor", grid: tuple[int, int]) -> "Tensor":
    """Return each block's share of an image's total saliency, (..., rows, columns).

    If the total is 0, all shares are equal.
    """
    from mixup_core.mixing.patches import patch_means

    means = patch_means(saliency, grid)
    total = means.sum(dim=(-2, -1), keepdim=True)
    return (means / total).where(total > 0, 1 / (grid[0] * grid[1]))


def _jumps(pair: "Tensor", count: int, neighbourhood: int, axis: int) -> "Tensor":
    """Return the mean difference of pixels across the borders between blocks, along an axis.

    Returns:
        (2, 2, batch, ...): the image before the border, the image behind it, and the borders, one
        fewer than blocks along the axis.
    """
    import torch

    from mixup_core.mixing.patches import patch_means

    sides = [math.gcd(side // count, neighbourhood) for side in pair.shape[3:]]
    cells = pair.shape[3] // sides[0], pair.shape[4] // sides[1]
    means = patch_means(pair, cells).movedim(3 + axis, 3)
    step = means.shape[3] // count
    before, behind = means[:, :, :, step - 1 : -1 : step], means[:, :, :, step::step]
    jumps = (before[:, None] - behind[None]).abs().mean(dim=3)
    along = jumps.reshape(*jumps.shape[:4], count, -1).mean(dim=5)
    return along if axis == 0 else torch.movedim(along, 3, 4)
