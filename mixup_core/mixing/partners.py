"""Partner: rules by which the partner of each image is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from mixup_core.arrays import Tensor, np, torch
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Range

Pairing = Literal["dataset", "permutation"]
"""Kind of partners for which `loss_floor` has a formula."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochOrder:
    """Training images of one epoch in the order of their use, for which a rule draws partners."""

    indices: Tensor
    """Index of each image in the training set, (images,), int64, on the CPU."""
    batch_sizes: Sequence[int]
    """Number of images in each batch, in the order of `indices`."""
    shown: Callable[[Tensor], Tensor]
    """Function that returns the images at given indices, (images, ...), without augmentation."""

    def batches(self) -> Sequence[Tensor]:
        """Return, for each batch of this epoch, the indices of its images in the training set."""
        return torch.split(self.indices, list(self.batch_sizes))


@dataclass(frozen=True, kw_only=True, slots=True)
class FromDataset:
    """Draws partners uniformly from the training set, with replacement.

    An image can be its own partner.

    Example:
        In a study file: `mix.partner: dataset`.

        >>> import torch
        >>> from mixsweep.plugins import stream
        >>> from mixup_core.mixing.partners import EpochOrder, FromDataset
        >>> order = EpochOrder(indices=torch.arange(6), batch_sizes=(3, 3), shown=torch.zeros_like)
        >>> FromDataset().draw(order, stream(0, "mixing")).shape
        torch.Size([6])
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "dataset"
    pairing: ClassVar[Literal["dataset"]] = "dataset"
    """Value of `partner` for `loss_floor`; None: no formula is known."""

    def draw(self, order: EpochOrder, rng: np.random.Generator) -> Tensor:
        """Draw the partner of each image of an epoch; training calls this once per epoch."""
        count = len(order.indices)
        # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
        # stored runs of the same key; tests/golden/test_draws.py fails.
        return torch.from_numpy(rng.integers(count, size=count))


@dataclass(frozen=True, kw_only=True, slots=True)
class FromBatch:
    """Draws the partners of a batch's images as a random permutation of these images.

    On average, one image of each batch is paired with itself.

    Example:
        In a study file: `mix.partner: permutation`.

        >>> import torch
        >>> from mixsweep.plugins import stream
        >>> from mixup_core.mixing.partners import EpochOrder, FromBatch
        >>> order = EpochOrder(indices=torch.arange(6), batch_sizes=(3, 3), shown=torch.zeros_like)
        >>> partners = FromBatch().draw(order, stream(0, "mixing"))
        >>> partners[:3].sort().values, partners[3:].sort().values
        (tensor([0, 1, 2]), tensor([3, 4, 5]))
    """

    tag: ClassVar = "permutation"
    pairing: ClassVar[Literal["permutation"]] = "permutation"

    def draw(self, order: EpochOrder, rng: np.random.Generator) -> Tensor:
        return torch.cat(
            [batch[torch.from_numpy(rng.permutation(len(batch)))] for batch in order.batches()]
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Similar(Checked):
    """Draws another image of the batch as partner, more likely if its pixels are similar.

        P(j | i) ~ exp(-|x_i - x_j|^2 / (2 bandwidth^2 m))

    P(j | i) is the probability of partner j for image i; `~` means proportional to, over all other
    images j. m is the mean squared distance between two images of the batch. A large bandwidth
    makes all images equally likely. No formula for the infimum of the expected loss is known, so
    runs do not record how far their loss is above it.

    Source: the kernel is that of Yao et al. 2022, arXiv:2210.05775, where it applies to labels.

    Example:
        In a study file: `mix.partner: {similar: {bandwidth: 0.5}}`.

        >>> import torch
        >>> from mixup_core.mixing.partners import Similar
        >>> square = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
        >>> Similar().chosen(square, torch.tensor([0.2, 0.7]).double())
        tensor([1, 0])
    """

    tag: ClassVar = "similar"
    pairing: ClassVar[None] = None

    bandwidth: Annotated[float, Range(1e-6, 1e6)] = 0.5
    """Width of the kernel, in units of the root mean squared distance of the batch."""

    def draw(self, order: EpochOrder, rng: np.random.Generator) -> Tensor:
        places = torch.from_numpy(rng.random(len(order.indices)))
        found, start = [], 0
        for batch in order.batches():
            images = order.shown(batch).flatten(1).double()
            places = places.to(images.device)  # copied once, if at all
            place = places[start : start + len(batch)]
            found.append(start + self.chosen(torch.cdist(images, images).square(), place))
            start += len(batch)
        return order.indices[torch.cat(found).cpu()]

    def chosen(self, square: Tensor, place: Tensor) -> Tensor:
        """Choose each image's partner from its batch; return the index in the batch, (batch,).

        If the batch has a single image, the image is its own partner.
        """
        count = len(square)
        if count == 1:
            return torch.zeros(1, dtype=torch.int64, device=square.device)
        # All entries but the diagonal. Indexing by a mask would make the host wait for the GPU.
        others = square.flatten()[1:].view(count - 1, count + 1)[:, :-1].flatten()
        mean = others.mean().clamp(min=torch.finfo(square.dtype).tiny)
        is_self = torch.eye(count, dtype=torch.bool, device=square.device)
        square = square.masked_fill(is_self, torch.inf)
        # Subtracted, so that the nearest image has the weight exp(0) = 1 and not all are 0.
        nearest = square.amin(dim=1, keepdim=True)
        below = torch.exp((nearest - square) / (2 * self.bandwidth**2 * mean)).cumsum(dim=1)
        wanted = place[:, None] * below[:, -1:]
        return torch.searchsorted(below, wanted, right=True).squeeze(1)


Partner = FromDataset | FromBatch | Similar
"""Union of all rules for drawing partners. To add one, write its class and add it to this union."""
