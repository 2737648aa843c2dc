"""Rows taken from two images in turn."""

from dataclasses import dataclass

from mixsweep.plugins import Count, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class Stripes(Operation):
    """Bands of rows come from the partner; the label weight is the share of rows that stay."""

    tag = "stripes"

    width: Count = 2
    """Rows of a band."""

    def draw(self, lam, size, rng):
        """Return for each weight which bands stay: (weights, rows), 1 where a row stays."""
        import numpy as np

        height = size[0]
        bands = rng.random((len(lam), -(-height // self.width))) < lam[:, None]
        return np.repeat(bands, self.width, axis=1)[:, :height].astype(np.float32)

    def mix(self, own, beside, lam, drawn):
        """Return the mixed images and the weight of the label of `own`."""
        import torch

        stays = drawn.to(own)
        return torch.where(stays[:, None, :, None] > 0, own, beside), stays.mean(dim=1)
