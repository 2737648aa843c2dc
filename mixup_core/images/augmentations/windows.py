"""draw_windows: draws rectangles of random area and aspect ratio inside an image."""

# Tests freeze the order and number of the random draws in this file: a change changes results.

from __future__ import annotations

import math

from mixup_core.arrays import NDArray, np

_ATTEMPTS = 10


def draw_windows(
    shape: tuple[int, ...],
    size: tuple[int, int],
    area: tuple[float, float],
    ratio: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw a random window of each image: a rectangle, for example the part to erase.

    Area, logarithm of the aspect ratio and position are uniform; sides are rounded. Ten
    rectangles are drawn for each image, and the first that fits into it is used, as in torchvision;
    if none fits, the window is the whole image.
    """
    tries = (*shape, _ATTEMPTS)
    pixels = rng.uniform(*area, tries) * size[0] * size[1]
    aspect = np.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1]), tries))
    place = rng.random((*shape, 2))
    lengths = np.stack([np.rint(np.sqrt(pixels / aspect)), np.rint(np.sqrt(pixels * aspect))], -1)
    fits = ((lengths >= 1) & (lengths <= size)).all(axis=-1)
    first = fits.argmax(-1)[..., None, None]
    found: NDArray[np.bool_] = np.asarray(fits.any(axis=-1))
    chosen = np.take_along_axis(lengths, first, axis=-2)[..., 0, :]
    chosen = np.where(found[..., None], chosen, size)
    begin = np.floor(place * (np.asarray(size) - chosen + 1))
    windows = np.stack([begin, begin + chosen], axis=-1).reshape(*shape, 4)
    return windows.astype(np.int64), found
