"""CutMix with labels by the visible parts of the objects, and a control with shuffled labels."""

from dataclasses import dataclass

from mixsweep.plugins import Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class CutMixVisible(Operation):
    """CutMix whose label weights are shares of visible object pixels, not of the patch's area.

    The images are those of CutMix: each seed has the same boxes. Pixels of an object are those
    brighter than the darkest pixel of the batch, as in Fashion-MNIST, whose background is black.
    Where no object is visible, the weight is CutMix's.

    Source: arXiv:2606.04820, whose masks come from a segmentation network.
    """

    tag = "cutmix-visible"

    shuffled: bool = False
    """True: exchange the corrections of the weights at random between the images of a batch. They
    then have the same distribution and say nothing about their image."""

    def draw(self, lam, size, rng):
        """Return for each weight first row, end row, first column, end column, and a random key."""
        import numpy as np

        height_width = np.asarray(size)
        sides = (np.sqrt(1 - lam)[:, None] * height_width).astype(np.int64)
        centres = rng.integers(height_width, size=(len(lam), 2))
        first = np.clip(centres - sides // 2, 0, height_width)
        end = np.clip(centres + sides // 2, 0, height_width)
        keys = rng.random((len(lam), 1))
        return np.concatenate([np.stack([first, end], axis=2).reshape(-1, 4), keys], axis=1)

    def mix(self, own, beside, lam, drawn):
        """Return the images of CutMix and the share of the visible object pixels that are own."""
        import torch

        box = drawn[:, :4].long()
        row = torch.arange(own.shape[2], device=own.device)
        column = torch.arange(own.shape[3], device=own.device)
        in_rows = (row >= box[:, :1]) & (row < box[:, 1:2])
        in_columns = (column >= box[:, 2:3]) & (column < box[:, 3:])
        stays = ~(in_rows[:, :, None] & in_columns[:, None, :]).expand(len(own), -1, -1)
        mixed = torch.where(stays[:, None], own, beside)
        area = stays.float().mean(dim=(1, 2))
        darkest = torch.minimum(own.amin(), beside.amin())
        of_own = ((own > darkest).any(dim=1) & stays).float().sum(dim=(1, 2))
        of_beside = ((beside > darkest).any(dim=1) & ~stays).float().sum(dim=(1, 2))
        seen = of_own + of_beside
        weight = torch.where(seen > 0, of_own / seen.clamp(min=1), area)
        if self.shuffled:
            correction = (weight - area)[drawn[:, 4].expand(len(own)).argsort()]
            weight = (area + correction).clamp(0, 1)
        return mixed, weight
