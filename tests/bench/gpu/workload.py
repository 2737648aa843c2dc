"""Workload: numbers of steps, datasets and configurations of the GPU benchmark."""

from dataclasses import dataclass, replace

import torch

from mixup_core.images.choices.models import Mlp, NarrowResNet, ResNet18
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images, Splits, load
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.forward import Precision
from mixup_core.laws import Beta, Erm
from mixup_core.problem import DataError

Network = ResNet18 | NarrowResNet | Mlp
TABLE_1_PRECISION: Precision = "float32"
"""Precision of the bundled studies that repeat table 1 of arXiv:2210.13512."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Size of the GPU benchmark: numbers of steps, batch size, networks and datasets."""

    batch: int
    steps: int
    """Training steps in one timed block."""
    epochs: int
    processes: tuple[int, ...]
    """Numbers of processes to try on one device."""
    window: float
    """Seconds during which the steps of concurrent processes are counted."""
    model: Network
    small: Network
    """Network whose steps are so short that most of their time is spent on launching kernels."""
    data: tuple[str, ...]
    limit: int | None = None
    """Maximum number of training images; None: all of them."""


GPU = Size(
    batch=750,
    steps=40,
    epochs=3,
    processes=(1, 2, 4, 8),
    window=5.0,
    model=ResNet18(),
    small=NarrowResNet(),
    data=("fashion-mnist", "cifar10", "cifar100"),
)
REHEARSAL = Size(
    batch=50,
    steps=2,
    epochs=4,
    processes=(1, 2),
    window=0.5,
    model=NarrowResNet(),
    small=Mlp(hidden=(16,)),
    data=("digits",),
    limit=1010,
)


def images_of(size: Size, name: str) -> tuple[Splits, str]:
    """Return a dataset, and a text that says if its images are the published ones or noise.

    A dataset that is not on this machine is replaced by as many images of noise, so that the last
    batch has the same size. At most `size.limit` training and a fifth as many test images are kept.
    """
    try:
        data, kind = load(DataConfig(name=name)), "published images"
    except DataError:
        data, kind = _noise(name), "noise around weak patterns"
    if size.limit is not None and data.test is not None:
        data = replace(
            data, train=_first(data.train, size.limit), test=_first(data.test, size.limit // 5)
        )
    return data, kind


def config_of(
    size: Size, name: str, precision: Precision = TABLE_1_PRECISION, *, mixes: bool = True
) -> TrainConfig:
    """Return the configuration of a run of table 1 of arXiv:2210.13512, with `size.epochs` epochs.

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
        epochs=size.epochs,
        batch_size=size.batch,
        precision=precision,
    )


def _noise(name: str) -> Splits:
    """Return a dataset of noise with one weak pattern per class, so the test error is not 0."""
    info, rng = DATASETS[name].info, torch.Generator().manual_seed(1)
    shape = (info.channels, info.image_size, info.image_size)
    patterns = torch.randint(0, 256, (info.num_classes, *shape), dtype=torch.uint8, generator=rng)

    def images(count: int) -> Images:
        labels = torch.arange(count) % info.num_classes
        noise = torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=rng)
        return Images(pixels=noise // 16 * 15 + patterns[labels] // 16, labels=labels)

    return Splits(info=info, train=images(info.num_train), val=None, test=images(info.num_test))


def _first(images: Images, count: int) -> Images:
    return Images(pixels=images.pixels[:count], labels=images.labels[:count])
