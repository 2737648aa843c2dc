import math

import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional

from mixup_core.images.augmentations.random_resized_crop import RandomResizedCrop, draw_windows


@pytest.mark.parametrize("size", [(32, 32), (10, 17)])
def test_random_resized_crop_matches_torchvision(size: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (40, 3, *size), dtype=torch.uint8, generator=rng)
    drawn = RandomResizedCrop().draw((40,), size, np.random.default_rng(0))
    assert drawn is not None
    found = RandomResizedCrop().on_pixels(pixels, torch.from_numpy(drawn))
    for image, whole, (top, bottom, left, right, mirrored) in zip(
        found, pixels.float(), drawn.tolist(), strict=True
    ):
        expected = functional.resized_crop(
            whole, top, left, bottom - top, right - left, list(size), antialias=True
        )
        expected = expected.flip(-1) if mirrored else expected
        torch.testing.assert_close(image, expected, atol=0.01, rtol=0)


def test_drawn_windows_have_the_requested_areas_and_aspect_ratios() -> None:
    windows, found = draw_windows(
        (20_000,), (64, 64), (0.1, 0.5), (0.5, 2.0), np.random.default_rng(0)
    )
    assert found.all()
    height, width = windows[:, 1] - windows[:, 0], windows[:, 3] - windows[:, 2]
    area, ratio = height * width / 64**2, width / height
    assert 0.09 < area.min() < area.max() < 0.52
    assert area.mean() == pytest.approx(0.3, abs=0.01)
    assert np.log(ratio).mean() == pytest.approx(0, abs=0.02)
    assert abs(np.log(ratio)).max() < math.log(2) + 0.1
    assert (windows >= 0).all()
    assert (windows <= 64).all()


def test_the_window_is_the_whole_image_when_no_window_fits() -> None:
    windows, found = draw_windows((3,), (4, 5), (1.0, 1.0), (9.0, 9.0), np.random.default_rng(0))
    assert not found.any()
    assert windows.tolist() == [[0, 4, 0, 5]] * 3
