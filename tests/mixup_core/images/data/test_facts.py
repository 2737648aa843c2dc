"""Facts of a dataset: class counts, and errors about data as callers see them."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import interpolate

from mixup_core.images.data.facts import Images, squared
from mixup_core.images.data.sets import DATASETS


def test_num_bytes_of_a_dataset_is_the_size_of_its_pixels() -> None:
    assert DATASETS["cifar10"].info.num_bytes == 60_000 * 3 * 32 * 32


def noise(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def of_noise(num: int, channels: int, height: int, width: int) -> Images:
    return Images.of_arrays(noise(num, channels, height, width), np.arange(num) % 3)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint64, list])
def test_images_of_arrays_keep_the_pixel_values_and_store_labels_as_int64(kind: Any) -> None:
    columns_first = noise(4, 5, 6, 3)
    pixels, labels = columns_first.transpose(0, 3, 2, 1), [3, 0, 7, 7]
    given = labels if kind is list else np.array(labels, dtype=kind)
    images = Images.of_arrays(pixels, given)
    assert images.pixels.is_contiguous()
    assert images.pixels.dtype == torch.uint8
    np.testing.assert_array_equal(images.pixels.numpy(), pixels)
    assert images.labels.dtype == torch.int64
    assert images.labels.tolist() == labels
    assert (len(images), images.pool) == (4, 1)


def test_images_of_arrays_share_contiguous_pixels() -> None:
    pixels = noise(2, 1, 4, 4)
    images = Images.of_arrays(pixels, [0, 1])
    pixels[1] = 7
    assert (images.pixels[1] == 7).all()


@pytest.mark.parametrize(
    ("width", "height"), [(8, 8), (40, 16), (16, 40), (9, 8), (11, 8), (8, 13), (5, 5), (3, 4)]
)
def test_pictures_are_resized_by_their_shorter_side_and_cropped_at_the_centre(
    width: int, height: int
) -> None:
    picture = Image.fromarray(noise(height, width, 3))
    short = min(width, height)
    new = (8 * width // short, 8 * height // short)
    left, top = (round((side - 8) / 2) for side in new)
    resized = np.asarray(picture.resize(new, Image.Resampling.BILINEAR))
    found = squared(picture, 8)
    assert found.dtype == torch.uint8
    expected = resized[top : top + 8, left : left + 8]
    np.testing.assert_array_equal(found.permute(1, 2, 0).numpy(), expected)


@pytest.mark.parametrize("size", [4, 7, 12, 24])
def test_resized_images_are_bilinear_and_antialiased(size: int) -> None:
    images = of_noise(6, 3, 12, 12)
    found = images.resized(size)
    floats, shape = images.pixels.float(), (size, size)
    expected = interpolate(floats, shape, mode="bilinear", antialias=True)
    assert found.pixels.dtype == torch.uint8
    torch.testing.assert_close(found.pixels.float(), expected, atol=1.5, rtol=0)
    assert torch.equal(found.labels, images.labels)


def test_resizing_many_images_keeps_their_order() -> None:
    images = of_noise(2001, 1, 4, 4)
    found = images.resized(2)
    assert len(found.pixels) == len(found) == 2001
    for place in (0, 999, 1000, 1999, 2000):
        alone = Images(pixels=images.pixels[[place]], labels=images.labels[[place]]).resized(2)
        assert torch.equal(found.pixels[[place]], alone.pixels)


@pytest.mark.parametrize(("pool", "dtype"), [(2, torch.int16), (11, torch.int16),
                                             (12, torch.int32)])  # fmt: skip
def test_pooling_white_pixels_does_not_overflow(pool: int, dtype: torch.dtype) -> None:
    white = torch.full((1, 1, 2 * pool, pool), 255, dtype=torch.uint8)
    found = Images(pixels=white, labels=torch.tensor([0])).pooled(pool).pixels
    assert found.dtype == dtype
    assert found.tolist() == [[[[255 * pool**2]] * 2]]


def test_pooling_again_by_another_factor_is_refused() -> None:
    images = of_noise(2, 1, 8, 8)
    assert images.pooled(1) is images
    pooled = images.pooled(2)
    assert pooled.pooled(2) is pooled
    for pool in (1, 4):
        with pytest.raises(ValueError, match=rf"by one `pool` only, got \(self.pool=2, {pool=}\)"):
            pooled.pooled(pool)
