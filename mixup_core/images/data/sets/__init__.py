"""Published datasets, one file each: the registry of datasets, and the values of `data.name`."""

import re
from collections.abc import Collection, Iterator
from typing import get_args

from mixup_core.config.catalogue import CatalogueError, Register
from mixup_core.images.data.facts import Dataset, SplitName
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


class _Datasets(Register[Dataset]):
    def check(self, entry: Dataset) -> None:
        super().check(entry)
        info = entry.info
        if not len(info.mean) == len(info.std) == info.channels:
            raise CatalogueError(
                f"the dataset {entry.name} has {info.channels} channels, {len(info.mean)} values "
                f"of `mean` and {len(info.std)} of `std`; give one of each for every channel"
            )
        if not all(std > 0 for std in info.std):
            raise CatalogueError(
                f"the dataset {entry.name} has a value of `std` that is not above 0"
            )
        if entry.files and entry.files.keys() != {*get_args(SplitName)}:
            raise CatalogueError(
                f"the dataset {entry.name} has `files` of {' and '.join(entry.files)}; list those "
                "of `train` and of `test`, also if both are in one file"
            )
        if unpinned := [
            file
            for files in entry.files.values()
            for file, pin in files.items()
            if not re.fullmatch("sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", pin)
        ]:
            raise CatalogueError(
                f"the dataset {entry.name} has no valid checksum of its file {unpinned[0]}; write "
                "`sha256:` and the hexadecimal digest of the file's contents"
            )


DATASETS: Register[Dataset] = _Datasets("dataset")
"""Registry of datasets by name. To add one, write its module in `sets/` and add it below."""

DATASETS.add(
    fashion_mnist.DATASET, mnist.DATASET, cifar.CIFAR10, cifar.CIFAR100, svhn.DATASET,
    stl10.DATASET, caltech101.DATASET, dtd.DATASET, fgvc_aircraft.DATASET, tiny_imagenet.DATASET,
    digits.DATASET,
)  # fmt: skip


class _Names(Collection[str]):
    """Values of `data.name`: names of datasets, those of plugins too, and `image-folder`."""

    noun = DATASETS.noun
    origins = DATASETS.origins

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __iter__(self) -> Iterator[str]:
        yield from (*DATASETS, "image-folder")

    def __len__(self) -> int:
        return len(DATASETS) + 1


DATA_NAMES = _Names()
