import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional

from mixup_core.images.augmentations.random_resized_crop import RandomResizedCrop


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
