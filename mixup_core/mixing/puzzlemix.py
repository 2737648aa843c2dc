"""PuzzleMix: combines the salient parts of two images, moved so that they do not overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Floats, Ints, NDArray, Tensor, np, scipy, torch
from mixup_core.config.limits import Count, Range
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.pixel_saliency import fine_grained

GRIDS = (2, 4, 8, 16)
"""Possible numbers of blocks along a side of the image. `PuzzleMix.draw` draws one of those that
divide both sides.
"""
_TINY = 1e-8
_MOST_MOVED = 8192
"""Largest number of blocks of an image that are moved; a matrix of their costs has 512 MiB."""
Strength = Annotated[float, Range(0, 1e6)]
"""Type of the weight of a part of the cost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PuzzleMix(Operation):
    """Combines blocks of two images: a mask keeps salient blocks, which move to visible places.

    The mask has one of `levels` values from 0 to 1 in each block. It minimises a cost: the saliency
    that it hides, the differences of mask and pixels between neighbouring blocks, and a penalty for
    values away from lam (minus the log of their probability in a binomial law of mean lam). Then
    the blocks of each image are moved so that salient ones are visible. The label weight is the
    mean of the mask. The saliency of a pixel is the root mean square over channels of the loss
    gradient, for the network in evaluation mode; it needs two more passes per batch. No formula for
    the infimum of the expected loss is known, so runs do not record how far their loss is above it.

    Differences from the authors' code: mask and moves have exactly minimal cost (theirs only
    nearly); pixel differences count in the units of the network's input and never lower the cost;
    adversarial noise and the loss on clean images are left out. The method `mix`, which training
    does not call, computes saliency from pixels (`mixing.pixel_saliency`). Mask and moves are
    computed on the CPU, so a GPU has to wait.

    Source: Kim, Choo and Song 2020, arXiv:2009.06962, sections 3 and 4.

    Example:
        In a study file: `mix.operation: {puzzlemix: {levels: 2}}`.

        >>> import numpy as np
        >>> from mixsweep.plugins import stream
        >>> from mixup_core.mixing.puzzlemix import PuzzleMix
        >>> PuzzleMix().draw(np.array([0.3]), (6, 6), stream(0, "mixing operation"))  # 2 x 2 blocks
        array([[2]])
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "puzzlemix"
    needs_saliency: ClassVar = True

    levels: Annotated[int, Range(2, 4)] = 3
    """Number of possible values of the mask; 3 means 0, 1/2 and 1."""
    mask_smoothness: Strength = 1.2
    """Weight of mask differences between neighbouring blocks (beta in the source)."""
    pixel_smoothness: Strength = 0.125
    """Weight of pixel differences between neighbouring blocks, as a multiple of `mask_smoothness`
    (gamma in the source). The authors use 0.5 for pixels in [0, 1], whose spread is about a fourth
    of that of the normalised inputs here.
    """
    prior: Strength = 0.2
    """Weight of the distance between mask and lam (eta in the source)."""
    neighbourhood: Count = 4
    """Side, in pixels, of the squares along a border of blocks whose mean pixels are compared. If
    it does not divide that of the blocks, the greatest common divisor of both is used.
    """
    moves: bool = True
    """True: move the blocks of both images after the mask is chosen."""
    transport_cost: Strength = 0.8
    """Cost of moving a block by the whole side of the image; the cost is quadratic in distance."""
    transport_size: Count = 4
    """Side, in pixels, of the moved blocks. If it does not divide the side of the mask's blocks,
    the mask's blocks are moved.
    """

    def unfit(self, size: tuple[int, int]) -> str | None:
        if not (counts := _grids(size)):
            return f"{self.tag} needs images with an even height and an even width"
        most = max(math.prod(self._moved(size, count)) for count in counts)
        if self.moves and most > _MOST_MOVED:
            text = f"{self.tag} moves at most {_MOST_MOVED} blocks of an image, not {most}"
            return f"{text}; set a larger transport_size, or `moves: false`"
        return None

    def _moved(self, size: tuple[int, int], count: int) -> tuple[int, int]:
        """Return the rows and columns of the blocks that move, if the mask has count x count."""
        blocks = [side // count for side in size]
        is_finer = all(side % self.transport_size == 0 for side in blocks)
        rows, columns = (side // self.transport_size if is_finer else 1 for side in blocks)
        return count * rows, count * columns

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        known = _grids(size)
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return np.asarray(known)[rng.integers(len(known), size=(len(lam), 1))]

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        saliency = torch.stack([fine_grained(own), fine_grained(beside)])
        return self.mix_salient(own, beside, lam, drawn, saliency.clamp(min=0))

    def mix_salient(
        self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor, saliency: Tensor
    ) -> tuple[Tensor, Tensor]:
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
        self, pair: Tensor, saliency: Tensor, lam: Tensor, count: int
    ) -> tuple[Tensor, Tensor]:
        """Return the masks, (batch, count, count), and both images with their blocks moved."""
        grid = self._moved((pair.shape[3], pair.shape[4]), count)
        finer = [side // count for side in grid]
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

    def _costs(self, pair: Tensor, shares: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the costs of showing either image in each block, and of mask differences."""
        beta = self.mask_smoothness / count / 16
        costs = shares.flip(0).clone()
        weights = []
        for axis in (0, 1):
            jumps = beta * self.pixel_smoothness * _jumps(pair, count, self.neighbourhood, axis)
            # jumps[a, b]: difference with image a before the border and image b behind the border.
            before = costs.narrow(2 + axis, 0, count - 1)
            before += jumps.mean(dim=1)
            behind = costs.narrow(2 + axis, 1, count - 1)
            behind += jumps.mean(dim=0)
            unlike = (jumps[0, 1] + jumps[1, 0] - jumps[0, 0] - jumps[1, 1]) / 2
            weights.append((unlike + beta).clamp(min=0))
        return torch.movedim(costs, 0, 1), weights[0], weights[1]

    def mask(self, lam: Floats, costs: Floats, below: Floats, beside: Floats) -> Floats:
        """Return the mask of lowest cost, (count, count): 1 shows the image itself, 0 its partner.

        The image is divided into count x count blocks. The cost of a mask also contains its
        distance from lam and, with given weights, its differences between neighbouring blocks.
        """
        last = self.levels - 1
        labels = np.arange(self.levels)  # label 0 shows only the image itself
        chance = np.array([math.comb(last, k) for k in labels])
        chance = chance * lam ** (last - labels) * (1 - lam) ** labels
        prior = -self.prior * np.log(chance + _TINY) / costs[0].size
        share = labels / last
        each = (1 - share) * costs[0][..., None] + share * costs[1][..., None] + prior
        return 1 - least_cost_labels(each, below, beside) / last


def _grids(size: tuple[int, int]) -> list[int]:
    return [count for count in GRIDS if all(side % count == 0 for side in size)]


def _on_host(*parts: Tensor) -> list[Floats]:
    """Copy tensors of equal first length to the CPU in one transfer; return them as arrays."""
    flat = [part.flatten(1) if part.dim() > 1 else part[:, None] for part in parts]
    whole = torch.cat(flat, dim=1).double().cpu().numpy()
    ends = np.cumsum([part.shape[1] for part in flat])[:-1]
    split = np.split(whole, ends, axis=1)
    return [found.reshape(part.shape) for found, part in zip(split, parts, strict=True)]


def _shares(saliency: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return each block's share of its image's total saliency, (..., rows, columns)."""
    means = patch_means(saliency, grid)
    total = means.sum(dim=(-2, -1), keepdim=True)
    return (means / total).where(total > 0, 1 / (grid[0] * grid[1]))


def _jumps(pair: Tensor, count: int, neighbourhood: int, axis: int) -> Tensor:
    """Return the mean absolute pixel difference across each border of blocks, along an axis."""
    sides = [math.gcd(side // count, neighbourhood) for side in pair.shape[3:]]
    cells = pair.shape[3] // sides[0], pair.shape[4] // sides[1]
    means = patch_means(pair, cells).movedim(3 + axis, 3)
    step = means.shape[3] // count
    before, behind = means[:, :, :, step - 1 : -1 : step], means[:, :, :, step::step]
    jumps = (before[:, None] - behind[None]).abs().mean(dim=3)
    along = jumps.reshape(*jumps.shape[:4], count, -1).mean(dim=5)
    return along if axis == 0 else torch.movedim(along, 3, 4)


def patch_means(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return the mean value of each patch of a regular grid, (..., rows, columns)."""
    rows, columns = grid
    split = values.reshape(*values.shape[:-2], rows, values.shape[-2] // rows, columns, -1)
    return split.mean(dim=(-3, -1))


def arranged(images: Tensor, sources: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return images with their patches rearranged; same shape."""
    rows, columns = grid
    count, channels = images.shape[:2]
    split = images.reshape(count, channels, rows, images.shape[2] // rows, columns, -1)
    patches = split.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    index = sources.view(*sources.shape, 1, 1, 1).expand(-1, -1, *patches.shape[2:])
    moved = patches.gather(1, index).view(count, rows, columns, *patches.shape[2:])
    return moved.permute(0, 3, 1, 4, 2, 5).reshape(images.shape)


def least_cost_transport(shares: Floats, shown: Floats, cost: float) -> Ints:
    """Return the index of the patch to show at each position, (positions,), row by row.

    The result is a permutation of the patches with minimal total cost. Each move costs `cost` times
    its squared distance, in units of the longer side of the grid. The saliency of each patch that
    ends at a visible position is subtracted.
    """
    rows, columns = shares.shape
    place = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    square = ((place[:, None] - place) ** 2).sum(axis=2) / max(rows - 1, columns - 1, 1) ** 2
    gains = shares.reshape(-1, 1) * (shown.reshape(1, -1) > 0)
    patches, places = scipy.optimize.linear_sum_assignment(cost * square - gains)
    sources: Ints = np.empty(rows * columns, dtype=np.int64)
    sources[places] = patches
    return sources


_SCALE = 2**20
"""Factor by which costs are multiplied before rounding: SciPy's maximum flow takes integers. Costs
that are too large for `_NEVER` get a smaller factor.
"""
_NEVER = 2**30
"""Capacity of arcs that a minimum cut must not cross."""


def least_cost_labels(costs: Floats, below: Floats, beside: Floats) -> Ints:
    """Label each cell of a grid 0, 1, ..., so that the total cost is minimal: (rows, columns).

        sum of costs[cell, label] + sum of weight ((label - label') / (labels - 1))^2

    The first sum runs over cells, the second over pairs of neighbouring cells with the labels
    `label` and `label'`; `labels` is the number of possible labels. The minimum is exact up to the
    rounding of costs. Among labellings of equal cost, the one with the lowest labels is returned.

    `below` and `beside` are the weights, at least 0, of the borders to the next row and column.
    There are two labels or more.

    Source: Ishikawa 2003, IEEE TPAMI 25(10), the cut for convex functions of ordered labels.
    """
    rows, columns, labels = costs.shape
    cells, levels = np.arange(rows * columns).reshape(rows, columns), labels - 1
    first = np.concatenate([cells[:-1].ravel(), cells[:, :-1].ravel()])
    second = np.concatenate([cells[1:].ravel(), cells[:, 1:].ravel()])
    weights = np.concatenate([below.ravel(), beside.ravel()])
    # At most the cost of all cells and borders together, which no cut and no capacity exceeds.
    most = float(np.ptp(costs, axis=2).sum() + 2 * weights.sum())
    scale = min(_SCALE, 0.99 * _NEVER / most) if most else _SCALE
    weights = np.rint(weights * scale / levels**2).astype(np.int64)
    # For labels i and j, the arcs between two cells cost weight (i - j)^2, plus
    # weight (i (levels - i) + j (levels - j)), which is subtracted from the cells' own costs.
    own = np.rint(costs * scale).astype(np.int64).reshape(-1, labels)
    label = np.arange(labels)
    total = np.bincount(first, weights, rows * columns) + np.bincount(second, weights, own.shape[0])
    own -= (total[:, None] * (label * (levels - label))).astype(np.int64)
    own -= own.min(axis=1, keepdims=True)
    # Node 2 + cell * levels + k is on the side of the source 0 if the cell's label exceeds k.
    node = 2 + np.arange(rows * columns * levels).reshape(-1, levels)
    chain = np.concatenate([np.zeros_like(node[:, :1]), node, np.ones_like(node[:, :1])], axis=1)
    pairs = np.repeat(node[first], levels, axis=1), np.tile(node[second], (1, levels))
    start = [chain[:, :-1], node[:, 1:], pairs[0], pairs[1]]
    end = [chain[:, 1:], node[:, :-1], pairs[1], pairs[0]]
    both = np.repeat(weights, levels**2)
    capacities = [own, np.full_like(node[:, 1:], _NEVER), both, both]
    ends = tuple(np.concatenate([part.ravel() for part in side]) for side in (start, end))
    capacity = np.concatenate([part.ravel() for part in capacities]).astype(np.int32)
    network = scipy.sparse.csr_array((capacity, ends), shape=(2 + node.size,) * 2)
    left = network - scipy.sparse.csgraph.maximum_flow(network, 0, 1).flow
    left.eliminate_zeros()
    reached = scipy.sparse.csgraph.breadth_first_order(left, 0, return_predecessors=False)
    is_above = np.isin(node, reached)
    found: Ints = is_above.sum(axis=1).reshape(rows, columns)
    return found
