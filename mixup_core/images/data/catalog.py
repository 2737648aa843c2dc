"""What is known of each data set before it is loaded: sizes, classes, pixel statistics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mixup_core.problem import DataError as DataError

Split = Literal["train", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetInfo:
    """Facts that validation and planning need; no pixels, no torch."""

    title: str
    """Name for captions."""
    num_train: int
    num_test: int
    num_classes: int
    channels: int
    image_size: int
    """Height and width in pixels."""
    mean: tuple[float, ...]
    """Per channel, of pixels scaled to [0, 1]; subtracted when normalising."""
    std: tuple[float, ...]
    """Per channel; divides when normalising."""


_HALF = (0.5,)

CATALOG: dict[str, DatasetInfo] = {
    "fashion-mnist": DatasetInfo(
        title="Fashion-MNIST",
        num_train=60_000,
        num_test=10_000,
        num_classes=10,
        channels=1,
        image_size=28,
        mean=_HALF,
        std=_HALF,
    ),
    "cifar10": DatasetInfo(
        title="CIFAR-10",
        num_train=50_000,
        num_test=10_000,
        num_classes=10,
        channels=3,
        image_size=32,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2023, 0.1994, 0.2010),
    ),
    "cifar100": DatasetInfo(
        title="CIFAR-100",
        num_train=50_000,
        num_test=10_000,
        num_classes=100,
        channels=3,
        image_size=32,
        mean=(0.5071, 0.4867, 0.4408),
        std=(0.2675, 0.2565, 0.2761),
    ),
    "digits": DatasetInfo(
        title="digits",
        num_train=1_437,
        num_test=360,
        num_classes=10,
        channels=1,
        image_size=8,
        mean=_HALF,
        std=_HALF,
    ),
}
"""Data sets of fixed size. An `image-folder` describes itself: see `images/data/folders.py`."""

DATA_NAMES: Mapping[str, str] = {
    **{name: info.title for name, info in CATALOG.items()},
    "image-folder": "a folder of images",
}
"""What `data.name` may be, to what it is."""
