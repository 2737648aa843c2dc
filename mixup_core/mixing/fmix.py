"""FMix: joins two images along a random mask of low frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mixup_core.arrays import Floats, NDArray, Tensor, np
from mixup_core.config.limits import Range
from mixup_core.mixing.masks import masked
from mixup_core.mixing.operation import Operation

_MASKS_AT_A_TIME = 4096
"""Number of masks computed at once. For 32 x 32 pixels, the Fourier transform then takes 70 MB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FMix(Operation):
    """Shows the image itself or its partner at each pixel, by a random mask of low frequencies.

    A random surface is drawn: Gaussian noise whose Fourier coefficients are divided by
    frequency^decay. The image itself is shown at the fraction lam of pixels where the surface is
    highest, the partner at all others. The label weight is lam. The surface varies equally in all
    directions. The authors' code confuses the axes of the coefficients, and its surfaces hardly
    vary along one side: they have only the frequencies 0 and 1 there.

    Source: Harris et al. 2020, arXiv:2002.12047, section 4.

    Example:
        In a study file: `mix.operation: {fmix: {decay: 2}}`.

        >>> import torch
        >>> from mixup_core.mixing.fmix import FMix
        >>> own, beside, lam = torch.ones(1, 1, 1, 3), torch.zeros(1, 1, 1, 3), torch.tensor([0.6])
        >>> mask = torch.tensor([[[True, True, False]]])
        >>> FMix().mix(own, beside, lam, mask)
        (tensor([[[[1., 1., 0.]]]]), tensor([0.6000]))
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "fmix"

    decay: Annotated[float, Range(0, 50)] = 3.0
    """Fourier coefficients of the noise are divided by frequency^decay; a larger decay gives larger
    shapes.
    """

    def draw(self, lam: Floats, size: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
        masks = np.empty((len(lam), *size), dtype=bool)
        for start in range(0, len(lam), _MASKS_AT_A_TIME):
            some = lam[start : start + _MASKS_AT_A_TIME]
            # Frozen: order, number and shape of this file's draws. After a change, new runs differ
            # from stored runs of the same key; tests/golden/test_draws.py fails.
            noise = rng.standard_normal((len(some), *size))
            # Rounded up or down with equal probability.
            kept = np.floor(some * size[0] * size[1] + rng.integers(2, size=len(some)))
            masks[start : start + len(some)] = highest(low_frequency(noise, self.decay), kept)
        return masks

    def mix(self, own: Tensor, beside: Tensor, lam: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        return masked(own, beside, drawn.to(own.dtype))[0], lam


def low_frequency(noise: Floats, decay: float) -> Floats:
    """Return noise smoothed by dividing its Fourier coefficients by frequency^decay; same shape."""
    size = noise.shape[1:]
    rows, columns = np.fft.fftfreq(size[0]), np.fft.rfftfreq(size[1])
    frequency = np.maximum(np.hypot(rows[:, None], columns), 1 / max(size))
    return np.fft.irfft2(np.fft.rfft2(noise) / frequency**decay, s=size)


def highest(surface: Floats, count: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask that is True at the `count` highest values of each surface; same shape."""
    flat = surface.reshape(len(surface), -1)
    order = np.argsort(-flat, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(flat.shape[1])[None], axis=1)
    return (rank < count[:, None]).reshape(surface.shape)
