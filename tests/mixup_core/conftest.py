"""Fixtures: a run on made-up images that takes a tenth of a second."""

from pathlib import Path

import pytest
import torch

from mixup_core.images.choices.models import NarrowResNet
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images, Splits
from mixup_core.images.data.facts import DatasetInfo
from tests.mixup_core.small_files import write_idx


def _images(info: DatasetInfo, num: int, seed: int) -> Images:
    """Return one noisy pattern per class, which a network learns after a few steps."""
    rng = torch.Generator().manual_seed(seed)
    shape = (info.channels, info.image_size, info.image_size)
    patterns = torch.rand(info.num_classes, *shape, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(num) % info.num_classes
    noisy = 0.4 * patterns[labels] + 0.6 * torch.rand(num, *shape, generator=rng)
    return Images(pixels=(255 * noisy).to(torch.uint8), labels=labels)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def splits() -> Splits:
    info = DatasetInfo(
        title="patterns", num_train=96, num_test=40, num_classes=4, channels=1, image_size=8,
        mean=(0.5,), std=(0.5,), smallest_class=24,
    )  # fmt: skip
    return Splits(info=info, train=_images(info, 96, 1), val=None, test=_images(info, 40, 2))


@pytest.fixture
def config() -> TrainConfig:
    return TrainConfig(
        data=DataConfig(name="digits", views="concat"),
        model=NarrowResNet(width=4),
        epochs=4,
        batch_size=20,
    )


@pytest.fixture
def fashion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with a tiny Fashion-MNIST in which image i has the label i modulo 10."""
    write_idx(tmp_path, "fashion-mnist", "FashionMNIST", monkeypatch)
    return tmp_path
