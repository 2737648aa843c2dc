import numpy as np
import torch

from mixup_core.mixing.pixel_saliency import REACHES, fine_grained


def _slowly(image: np.ndarray) -> np.ndarray:
    """Compute the saliency by its definition, pixel by pixel."""
    gray = image.mean(0)
    for _ in range(2):
        around = np.pad(gray, 1, mode="reflect")
        kernel = np.outer([1, 2, 1], [1, 2, 1]) / 16
        gray = np.array(
            [
                [(around[y : y + 3, x : x + 3] * kernel).sum() for x in range(gray.shape[1])]
                for y in range(gray.shape[0])
            ]
        )
    above, below = np.zeros_like(gray), np.zeros_like(gray)
    for y, x in np.ndindex(gray.shape):
        for reach in REACHES:
            square = gray[
                max(y - reach + 1, 0) : y + reach + 1, max(x - reach + 1, 0) : x + reach + 1
            ]
            rest = gray[y, x] - (square.sum() - gray[y, x]) / (square.size - 1)
            above[y, x] += max(rest, 0)
            below[y, x] += max(-rest, 0)
    both = above / (above.max() or 1) + below / (below.max() or 1)
    return both / (both.max() or 1)


def test_the_saliency_equals_its_definition_pixel_by_pixel() -> None:
    images = np.random.default_rng(0).random((2, 3, 15, 18))
    found = fine_grained(torch.from_numpy(images)).numpy()
    for image, saliency in zip(images, found, strict=True):
        np.testing.assert_allclose(saliency, _slowly(image), atol=1e-12)
