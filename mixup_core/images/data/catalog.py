"""What is known of each data set before it is loaded: sizes, classes, pixel statistics."""

from collections.abc import Mapping

from mixup_core.images.data.facts import DataError, Dataset, DatasetInfo, Split
from mixup_core.images.data.sets import (
    caltech101,
    cifar,
    digits,
    dtd,
    fashion_mnist,
    fgvc_aircraft,
    mnist,
    stl10,
    svhn,
    tiny_imagenet,
)

__all__ = ["CATALOG", "DATA_NAMES", "PUBLISHED", "DataError", "DatasetInfo", "Split"]

PUBLISHED: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        fashion_mnist.DATASET,
        mnist.DATASET,
        cifar.CIFAR10,
        cifar.CIFAR100,
        svhn.DATASET,
        stl10.DATASET,
        caltech101.DATASET,
        dtd.DATASET,
        fgvc_aircraft.DATASET,
        tiny_imagenet.DATASET,
        digits.DATASET,
    )
}
"""Name to data set. To add one is to write its file and to name it here."""

CATALOG: dict[str, DatasetInfo] = {name: dataset.info for name, dataset in PUBLISHED.items()}
"""Data sets of fixed size. An `image-folder` describes itself: see `images/data/folders.py`."""

DATA_NAMES: Mapping[str, str] = {
    **{name: info.title for name, info in CATALOG.items()},
    "image-folder": "a folder of images",
}
"""What `data.name` may be, to what it is."""
