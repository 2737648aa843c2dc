"""ImageData: what a problem needs of image data sets, and what is known of them. No torch."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from mixup_core.images.config import DataConfig, TrainConfig
from mixup_core.images.data.catalog import DataError, DatasetInfo
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, statuses
from mixup_core.images.data.folders import describe, folder_digest
from mixup_core.problem import DataSet


class ImageData:
    """What image training needs of its data sets (`mixup_core.problem.DataNeeds`)."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._found: dict[DataConfig, DataConfig | str] = {}

    def root(self) -> Path:
        """Return the folder of the data sets on this machine."""
        return data_root()

    def sets(self) -> tuple[DataSet, ...]:
        """Return where each data set of the catalogue is or would be."""
        return statuses(data_root())

    def fetch(self, name: str) -> str:
        """Put a data set under the root as `mixup_core.images.data.fetching.fetch` does."""
        return fetch(name, data_root())

    def prepare(self, config: TrainConfig, folder: Path) -> TrainConfig:
        """Return the configuration with an image-folder found and digested, each folder once.

        Raises:
            DataError: If the folder cannot be read; the same again for the same data.
        """
        data = config.data
        if data.folder is None:
            return config
        if data not in self._found:
            try:
                images = (folder / data.folder).absolute()
                placed = replace(data, folder=str(images))
                describe(placed)
                self._found[data] = replace(placed, digest=folder_digest(images, data_root()))
            except (DataError, OSError, ValueError) as error:
                self._found[data] = str(error)
        found = self._found[data]
        if isinstance(found, str):
            raise DataError(found, fields=("data.folder", "data.name"))
        return replace(config, data=found)

    def missing(self, config: TrainConfig) -> str | None:
        """Return that a data set is not here and how to get it; an image-folder was looked at."""
        root = data_root()
        for name in _needed(config.data):
            if not is_present(name, root):
                return f"{name}: not found in {root}; get it with mixsweep data fetch {name}"
        return None

    def open(self, config: TrainConfig) -> None:
        """Decode an image-folder, once for all runs of this machine: nobody else has looked at it.

        Raises:
            DataError: If a file is no image that can be used; the text names it.
        """
        if config.data.folder is not None:
            from mixup_core.images.data.mapped import load_mapped

            load_mapped(config.data)

    def checksums(self, config: TrainConfig) -> Mapping[str, Mapping[str, str]]:
        """Return data set to file to checksum."""
        data = config.data
        is_here = all(is_present(name, data_root()) for name in _needed(data))
        return {data.name: checksums(data)} if is_here else {}


def described(data: DataConfig) -> DatasetInfo:
    """Return what is known of a data set; a folder with a digest is scanned once."""
    return describe(data) if data.digest is None else _scanned(data)


_scanned = lru_cache(maxsize=64)(describe)


def num_available(data: DataConfig, info: DatasetInfo) -> int:
    """Return the images that a training subset is drawn from: an oracle has the test images too.

    It is below 1 where as many images are held out as there are.
    """
    return info.num_train - data.val_size + (info.num_test if data.oracle else 0)


def memory(config: TrainConfig) -> dict[str, int]:
    """Return the images of a data set in bytes, as the processes of a machine map them together."""
    return {config.data.name: described(config.data).num_bytes}


def _needed(data: DataConfig) -> tuple[str, ...]:
    """Return the names under which what a run loads is fetched."""
    return (data.name, *([f"{data.name}-c"] if data.test and data.corruptions else []))
