"""Facts of a dataset: class counts, and errors about data as callers see them."""

import dataclasses
from typing import Any

import pytest
import torch

from mixup_core.images.data.facts import DatasetInfo, Images

INFO = DatasetInfo(
    title="patterns", num_train=5, num_test=3, num_classes=2, channels=3, image_size=4,
    mean=(0.5,) * 3, std=(0.25,) * 3, smallest_class=2,
)  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [{}, {"num_train": 0}, {"num_test": 0}, {"channels": 1}, {"image_size": 1}, {"image_size": 9}],
)
def test_num_bytes_of_a_dataset_equals_the_bytes_of_its_pixels(changes: Any) -> None:
    info = dataclasses.replace(INFO, **changes)
    side = info.image_size
    splits = [
        Images(
            pixels=torch.zeros(num, info.channels, side, side, dtype=torch.uint8),
            labels=torch.zeros(num, dtype=torch.int64),
        )
        for num in (info.num_train, info.num_test)
    ]
    assert info.num_bytes == sum(images.pixels.nbytes for images in splits)
