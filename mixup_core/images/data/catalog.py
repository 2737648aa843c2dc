"""Catalog: facts about each dataset that are known before loading, such as sizes and classes."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from mixup_core.config.catalogue import CatalogueError, Origin, Register
from mixup_core.images.data.facts import DataError, Dataset, DatasetInfo, SplitName
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

__all__ = ["CATALOG", "DATA_NAMES", "PUBLISHED", "DataError", "DatasetInfo", "SplitName", "View"]

V = TypeVar("V")


class _Datasets(Register[Dataset]):
    def check(self, entry: Dataset) -> None:
        super().check(entry)
        info = entry.info
        if not len(info.mean) == len(info.std) == info.channels:
            raise CatalogueError(
                f"the dataset {entry.name} has {info.channels} channels, {len(info.mean)} values "
                f"of `mean` and {len(info.std)} of `std`; give one of each for every channel"
            )
        if unpinned := [
            file
            for files in entry.files.values()
            for file, pin in files.items()
            if not re.fullmatch("[a-z0-9]+:[0-9a-f]{16,}", pin)
        ]:
            raise CatalogueError(
                f"the dataset {entry.name} has no valid checksum of its file {unpinned[0]}; write "
                "`sha256:` and the hexadecimal digest of the file's contents"
            )


PUBLISHED: Register[Dataset] = _Datasets("dataset")
"""Registry of datasets by name. To add one, write its module in `sets/` and add it below."""

PUBLISHED.add(
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


class View(Mapping[str, V]):
    """Read-only view of the registry of datasets: maps names to one property, such as the title.

    Datasets that plugins define are included.
    """

    def __init__(self, of: Callable[[Dataset], V | None], own: Mapping[str, V]) -> None:
        """Create the mapping."""
        self._of = of
        self.own = dict(own)

    @property
    def noun(self) -> str:
        """Word for the names in this mapping, used in error messages: `dataset`."""
        return PUBLISHED.noun

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The plugins that define datasets, by name of the dataset."""
        return PUBLISHED.origins

    def __getitem__(self, name: str) -> V:
        """Return the value for a dataset."""
        value = self.own[name] if name in self.own else self._of(PUBLISHED[name])
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the datasets with a value."""
        yield from (name for name in PUBLISHED if name in self.own or name in self)
        yield from (name for name in self.own if name not in PUBLISHED)

    def __len__(self) -> int:
        """Return the number of datasets with a value."""
        return sum(1 for _ in self)


CATALOG = View[DatasetInfo](lambda dataset: dataset.info, {})
"""Facts by dataset name. The facts of an `image-folder` are read from its files
(`mixup_core.images.data.folders`).
"""

DATA_NAMES = View[str](lambda dataset: dataset.info.title, {"image-folder": "a folder of images"})
"""Titles of datasets, for messages, by value of `data.name`."""
