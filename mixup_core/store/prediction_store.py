"""PredictionStore: what finished runs predict, beside their last stage in a store.

    predictions/<2 hex>/<stage key>.bin    header line, then the bytes given

The header names the stage, the sha256 of the bytes and that of the last record they belong to, so
that a file proves itself: it is there whole or not at all, and no manifest speaks of it. A store
that knows nothing of predictions, or has lost them, is a store whose runs are finished all the
same.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from mixup_core.records import EpochRecord
from mixup_core.store.errors import UnreadableError
from mixup_core.store.files import Files
from mixup_core.store.names import PREDICTION_NAME, prediction_name
from mixup_core.store.sealed_files import SealedFiles


class PredictionStore:
    """Predictions under the keys of last stages. Holds no state of its own."""

    def __init__(self, files: Files) -> None:
        """Take the files of a store (`Store.files`)."""
        self._files = files
        self._sealed = SealedFiles(files)

    def write(self, key: str, record: EpochRecord, content: bytes) -> None:
        """Store the predictions of a stage, unless good ones are there.

        Args:
            key: Of the stage after the last epoch.
            record: Of that epoch: predictions are read beside this one alone.
            content: The predictions, as bytes.

        Raises:
            StoreFullError: If the disk is full; nothing is stored then.
        """
        if self.read(key, record) is not None:
            return
        data = _header(key, record, content) + content
        if not self._files.create(prediction_name(key), data):
            self._files.write(prediction_name(key), data)

    def read(self, key: str, record: EpochRecord) -> bytes | None:
        """Return the predictions of a stage; None if there are none, or none of this record.

        Damaged ones are put into quarantine, and absent.
        """
        name = prediction_name(key)
        data = self._sealed.read(name)
        if data is None:
            return None
        header, _, content = data.partition(b"\n")
        if _header(key, record, content) == header + b"\n":
            return content
        if not _is_sound(key, header, content):
            self._sealed.quarantine(name, "does not have the sha256 it states")
        return None

    def keys(self) -> frozenset[str]:
        """Return the stage keys under which predictions are stored; a name is no proof."""
        found = map(PREDICTION_NAME.fullmatch, self._files.names("predictions"))
        return frozenset(match["key"] for match in found if match)

    def remove(self, keys: Iterable[str]) -> int:
        """Remove the predictions of some stages, and return how many bytes that frees."""
        sizes = self.sizes(keys)
        for key in sizes:
            self._files.remove(prediction_name(key))
        return sum(sizes.values())

    def sizes(self, keys: Iterable[str]) -> Mapping[str, int]:
        """Return the bytes that the predictions of some stages take, of those that have any."""
        names = {prediction_name(key): key for key in keys}
        return {names[name]: size for name in names if (size := self._files.size(name)) is not None}

    def verify(self) -> tuple[str, ...]:
        """Read all predictions and quarantine what is damaged.

        Returns:
            One line per damaged file; empty if all is well.
        """
        problems = []
        for key in sorted(self.keys()):
            for name, data in self._files.read_present([prediction_name(key)]):
                if isinstance(data, UnreadableError):
                    self._sealed.quarantine(name, str(data))
                    problems.append(f"{name}: damaged")
                    continue
                header, _, content = data.partition(b"\n")
                if not _is_sound(key, header, content):
                    self._sealed.quarantine(name, "does not have the sha256 it states")
                    problems.append(f"{name}: damaged")
        return tuple(problems)


def _header(key: str, record: EpochRecord, content: bytes) -> bytes:
    plain = json.dumps(record.to_plain(), sort_keys=True).encode()
    digests = hashlib.sha256(content).hexdigest(), hashlib.sha256(plain).hexdigest()
    return f"mixsweep predictions of stage {key} {digests[0]} {digests[1]}\n".encode()


def _is_sound(key: str, header: bytes, content: bytes) -> bool:
    """Return whether a file is as it was written, for whatever record."""
    start = f"mixsweep predictions of stage {key} {hashlib.sha256(content).hexdigest()} ".encode()
    return header.startswith(start)
