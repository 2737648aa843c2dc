import numpy as np
import pytest
import torch

from mixup_core.images.augmentations.crop import PADDING
from mixup_core.images.augmentations.erasing import Erasing


def test_the_erased_window_becomes_the_mean_pixel() -> None:
    images = torch.ones(2, 3, 5, 6)
    still = [PADDING, PADDING, 0]
    drawn = torch.tensor([[*still, 1, 3, 2, 6], [*still, 0, 0, 0, 0]])
    seen = Erasing().on_images(images.clone(), drawn)
    expected = images.clone()
    expected[0, :, 1:3, 2:6] = 0
    assert torch.equal(seen, expected)


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_windows_are_erased_with_the_given_probability_and_mean_area(probability: float) -> None:
    erasing = Erasing(probability=probability)
    drawn = erasing.draw((4000,), (32, 32), np.random.default_rng(0))
    assert drawn is not None
    height, width = drawn[:, 4] - drawn[:, 3], drawn[:, 6] - drawn[:, 5]
    is_erased = height > 0
    assert is_erased.mean() == pytest.approx(probability, abs=0.03)
    area = (height * width / 32**2)[is_erased]
    assert probability == 0 or area.mean() == pytest.approx((0.02 + 0.33) / 2, abs=0.02)


def test_the_crop_before_erasing_is_optional() -> None:
    pixels = torch.arange(60, dtype=torch.uint8).view(1, 1, 6, 10)
    drawn = torch.tensor([[0, 0, 1, 0, 0, 0, 0]])
    assert torch.equal(Erasing(before="none").on_pixels(pixels, drawn), pixels)
    assert not torch.equal(Erasing(before="crop-flip").on_pixels(pixels, drawn), pixels)
