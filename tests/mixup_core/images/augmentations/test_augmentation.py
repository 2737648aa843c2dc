"""Tests that every augmentation, built-in or registered by a plugin, has to pass."""

import numpy as np
import pytest
import torch
from torch import Tensor

from mixup_core.config.building import parsed
from mixup_core.images.augmentations.augmentation import Augmentation

SIZE = (12, 14)
AUGMENTATIONS = sorted(Augmentation.catalogue)


def _pixels(count: int = 40, channels: int = 3) -> Tensor:
    rng = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, *SIZE), dtype=torch.uint8, generator=rng)


def _seen(tag: str, pixels: Tensor, seed: int = 0) -> Tensor:
    augmentation = parsed(Augmentation, tag)
    drawn = augmentation.draw((len(pixels),), SIZE, np.random.default_rng(seed))
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
