"""Augmentations: what every one has to pass, and each against its definition or torchvision."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional

from mixup_core.config.building import parsed
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.crop import PADDING, draw_moves, moved
from mixup_core.images.augmentations.erasing import Erasing
from mixup_core.images.augmentations.random_resized_crop import RandomResizedCrop, draw_windows

SIZE = (12, 14)
AUGMENTATIONS = sorted(Augmentation.catalogue)


def _pixels(count: int = 40, channels: int = 3, size: tuple[int, int] = SIZE) -> Tensor:
    rng = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, *size), dtype=torch.uint8, generator=rng)


def _seen(tag: str, pixels: Tensor) -> Tensor:
    augmentation = parsed(Augmentation, tag)
    drawn = augmentation.draw((len(pixels),), SIZE, np.random.default_rng(0))
    if drawn is None and not augmentation.changes_images:
        return pixels.float()
    given = torch.empty(len(pixels), 0) if drawn is None else torch.from_numpy(drawn)
    raw = augmentation.on_pixels(pixels, given).float()
    assert raw.min() >= 0
    assert raw.max() <= 255
    return augmentation.on_images(raw, given)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("tag", AUGMENTATIONS)
def test_augmentation_keeps_the_shape_and_does_not_change_its_input(
    tag: str, channels: int
) -> None:
    pixels = _pixels(channels=channels)
    copy = pixels.clone()
    seen = _seen(tag, pixels)
    assert seen.shape == pixels.shape
    assert seen.isfinite().all()
    assert torch.equal(pixels, copy)
    assert torch.equal(seen, copy.float()) == (tag == "none")


@pytest.mark.parametrize("tag", AUGMENTATIONS)
def test_augmenting_an_image_does_not_depend_on_its_batch(tag: str) -> None:
    augmentation = parsed(Augmentation, tag)
    pixels = _pixels()
    drawn = augmentation.draw((len(pixels),), SIZE, np.random.default_rng(0))
    if drawn is None:
        return
    given = torch.from_numpy(drawn)
    together = augmentation.on_images(augmentation.on_pixels(pixels, given).float(), given)
    for index in (0, 7, 39):
        one = slice(index, index + 1)
        alone = augmentation.on_pixels(pixels[one], given[one]).float()
        torch.testing.assert_close(augmentation.on_images(alone, given[one])[0], together[index])


@pytest.mark.parametrize("mode", ["constant", "reflect"])
@pytest.mark.parametrize("size", [(9, 7), (28, 28), (5, 6)])
def test_moved_crops_equal_crops_of_the_padded_image(mode: str, size: tuple[int, int]) -> None:
    pixels = _pixels(30, 2, size)
    moves = torch.from_numpy(draw_moves((30,), np.random.default_rng(0), mirrors=True))
    found = moved(pixels, moves, "black" if mode == "constant" else "reflect")
    assert found.dtype == torch.uint8
    padded = torch.nn.functional.pad(pixels.float(), [PADDING] * 4, mode=mode)
    for image, around, (row, column, mirrored) in zip(found, padded, moves.tolist(), strict=True):
        expected = around[:, row : row + size[0], column : column + size[1]]
        assert torch.equal(image.float(), expected.flip(-1) if mirrored else expected)


def test_reflection_repeats_when_a_side_is_shorter_than_the_padding() -> None:
    column = torch.tensor([[0], [1], [2]], dtype=torch.uint8).view(1, 1, 3, 1)
    first = moved(column, torch.tensor([[0, PADDING, 0]]), "reflect")
    assert first.flatten().tolist() == [0, 1, 2], "rows -4, -3, -2 of 0 1 2 1 0 1 2"
    last = moved(column, torch.tensor([[PADDING + 2, 0, 1]]), "reflect")
    assert last.flatten().tolist() == [2, 1, 0], "rows 2, 3, 4"


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


@pytest.mark.parametrize("size", [(32, 32), (10, 17)])
def test_random_resized_crop_matches_torchvision(size: tuple[int, int]) -> None:
    pixels = _pixels(40, 3, size)
    drawn = RandomResizedCrop().draw((40,), size, np.random.default_rng(0))
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
