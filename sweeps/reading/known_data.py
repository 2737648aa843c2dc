"""KnownData: what is known of the data of a study before any of it is loaded."""

from dataclasses import replace
from pathlib import Path

from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import DataError, DatasetInfo
from mixup_core.images.data.folders import describe, folder_digest


class KnownData:
    """Describes data, each once: the digest of an image-folder reads all of it."""

    def __init__(self, folder: Path) -> None:
        """Know nothing yet.

        Args:
            folder: Where relative image folders count from.
        """
        self._folder = folder
        self._known: dict[DataConfig, tuple[DataConfig, DatasetInfo] | str] = {}

    def of(self, data: DataConfig) -> tuple[DataConfig, DatasetInfo]:
        """Return the data with its folder found and digested, and what is known of it.

        Raises:
            DataError: If an image-folder cannot be read; the same again for the same data.
        """
        if data not in self._known:
            try:
                self._known[data] = _described(data, self._folder)
            except (DataError, OSError, ValueError) as error:
                self._known[data] = str(error)
        known = self._known[data]
        if isinstance(known, str):
            raise DataError(known)
        return known


def _described(data: DataConfig, folder: Path) -> tuple[DataConfig, DatasetInfo]:
    if data.folder is None:
        return data, describe(data)
    images = (folder / data.folder).absolute()
    data = replace(data, folder=str(images))
    info = describe(data)
    return replace(data, digest=folder_digest(images)), info
