"""Facts of a dataset: class counts, and errors about data as callers see them."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from mixup_core import problem
from mixup_core.images.data.facts import DataError, Dataset, DatasetInfo
from mixup_core.images.data.pixels import Images

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


def test_num_bytes_of_cifar10_follows_from_its_counts() -> None:
    cifar10 = dataclasses.replace(INFO, num_train=50_000, num_test=10_000, image_size=32)
    assert cifar10.num_bytes == 184_320_000


def test_dataset_info_is_keyword_only_and_immutable() -> None:
    with pytest.raises(TypeError, match="positional"):
        DatasetInfo(*dataclasses.astuple(INFO))
    with pytest.raises(dataclasses.FrozenInstanceError):
        INFO.num_train = 6  # type: ignore[misc]
    assert dataclasses.replace(INFO) == INFO
    assert hash(dataclasses.replace(INFO)) == hash(INFO)


def test_a_dataset_holds_its_reader_and_its_sources(tmp_path: Path) -> None:
    images = Images(pixels=torch.zeros(1, 3, 4, 4, dtype=torch.uint8), labels=torch.tensor([0]))
    dataset = Dataset(
        name="patterns",
        info=INFO,
        files={"train": {"patterns/all": "md5:00"}},
        sources=lambda root: ({str(root): lambda staging: None}, "draw them"),
        read=lambda root, split, size: images,
    )
    assert dataset.read(tmp_path, "train", 4) is images
    assert list(dataset.sources(tmp_path)[0]) == [str(tmp_path)]


def test_the_data_error_of_images_is_the_data_error_of_problems() -> None:
    assert DataError is problem.DataError
