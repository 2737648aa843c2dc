import numpy as np
import pytest
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


def test_saliency_does_not_depend_on_the_scale_and_offset_of_pixels() -> None:
    images = torch.rand(2, 1, 9, 9, generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(fine_grained(images), fine_grained(3 * images - 1))


def test_saliency_is_1_at_a_single_spot_and_0_in_a_uniform_image() -> None:
    image = torch.zeros(2, 1, 20, 20)
    image[0, 0, 4, 13] = 1
    saliency = fine_grained(image)
    assert float(saliency[0, 4, 13]) == pytest.approx(1)
    assert float(saliency[0].max()) == pytest.approx(1)
    assert float(saliency[0, 12, 2]) < 0.9
    assert not saliency[1].any()
