"""Workload: numbers of steps, datasets and configurations of the GPU benchmark."""

from dataclasses import dataclass

import torch
from torch import nn

from mixup_core.images.choices.models import Mlp, NarrowResNet, ResNet18
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.forward import Precision
from mixup_core.laws import Beta, Erm
from mixup_core.problem import DataError
from tests.mixup_core.small_files import noise_images

Network = ResNet18 | NarrowResNet | Mlp
TABLE_1_PRECISION: Precision = "float32"
"""Precision of the bundled studies that repeat table 1 of arXiv:2210.13512."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Size of the GPU benchmark: numbers of steps, batch size, networks and datasets."""

    batch: int
    steps: int
    """Training steps in one timed block."""
    processes: tuple[int, ...]
    """Numbers of processes to try on one device."""
    window: float
    """Seconds during which the steps of concurrent processes are counted."""
    model: Network
    small: Network
    """Network whose steps are so short that most of their time is spent on launching kernels."""
    data: tuple[str, ...]


GPU = Size(
    batch=750,
    steps=40,
    processes=(1, 2, 4, 8),
    window=5.0,
    model=ResNet18(),
    small=NarrowResNet(),
    data=("fashion-mnist", "cifar10", "cifar100"),
)
REHEARSAL = Size(
    batch=50,
    steps=2,
    processes=(1, 2),
    window=0.5,
    model=NarrowResNet(),
    small=Mlp(hidden=(16,)),
    data=("digits",),
)


def size_and_device() -> tuple[Size, torch.device]:
    """Return the size of the benchmark on this machine, and its GPU or CPU."""
    if torch.cuda.is_available():
        return GPU, torch.device("cuda")
    return REHEARSAL, torch.device("cpu")


def images_of(name: str) -> tuple[Splits, str]:
    """Return a dataset, and a text that says if its images are the published ones or noise.

    A dataset that is not on this machine is replaced by as many images of noise, so that the last
    batch has the same size.
    """
    try:
        return load(DataConfig(name=name)), "published images"
    except DataError:
        info = DATASETS[name].info
    train, test = (noise_images(info, count) for count in (info.num_train, info.num_test))
    return Splits(info=info, train=train, val=None, test=test), "noise"


def network_of(model: Network, info: DatasetInfo) -> nn.Module:
    """Return a network for pairs of images of a dataset, with initial weights of seed 0."""
    return model.initialised(2 * info.channels, info.num_classes, info.image_size, seed=0)


def config_of(
    size: Size, name: str, precision: Precision = TABLE_1_PRECISION, *, mixes: bool = True
) -> TrainConfig:
    """Return the configuration of a run of table 1 of arXiv:2210.13512, with two epochs.

    Args:
        size: Size of the benchmark.
        name: Name of the dataset.
        precision: Arithmetic of the forward and backward pass.
        mixes: True for the law Beta(1, 1), False for ERM.
    """
    return TrainConfig(
        data=DataConfig(name=name, views="concat"),
        model=size.model,
        mix=MixConfig(law=Beta(alpha=1.0) if mixes else Erm()),
        epochs=2,
        batch_size=size.batch,
        precision=precision,
    )
