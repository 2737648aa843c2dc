"""PredictionStore: the predictions of finished runs in a store.

    predictions/<2 hex>/<stage key>.bin    header line, then the predictions

The header has the stage key, the sha256 of the predictions, and the sha256 of the last record, so a
file can be validated alone; no other file refers to it. A run can count as finished without
predictions.
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
    """Predictions of finished runs, by the key of their last stage. The object is stateless."""

    def __init__(self, files: Files) -> None:
        """Open the predictions among the files of a store (`Store.files`)."""
        self._files = files
        self._sealed = SealedFiles(files)

    def write(self, key: str, record: EpochRecord, content: bytes) -> None:
        """Store the predictions of a stage, unless undamaged ones for this record exist.

        Args:
            key: Key of the stage after the last epoch.
            record: Record of that epoch; the predictions are valid for this record only.
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
        """Return a stage's predictions; None if none are stored for this record of its last epoch.

        Damaged predictions are moved to quarantine and count as missing.
        """
        return self.read_all({key: record}).get(key)

    def read_all(self, records: Mapping[str, EpochRecord]) -> Mapping[str, bytes]:
        """Return the undamaged predictions of stages by stage key; stages without any are left out.

        Predictions of another record than the given one count as missing. From a bucket, all are
        read in parallel.

        Args:
            records: Record of the last epoch by stage key.
        """
        names = {prediction_name(key): key for key in records}
        found = {}
        for name, data in self._files.read_present(names):
            key = names[name]
            if isinstance(data, UnreadableError):
                self._sealed.quarantine(name, str(data))
                continue
            header, _, content = data.partition(b"\n")
            if _header(key, records[key], content) == header + b"\n":
                found[key] = content
            elif not _is_sound(key, header, content):
                self._sealed.quarantine(name, "does not match its own sha256")
        return found

    def keys(self) -> frozenset[str]:
        """Return the stage keys of all predictions; the files are listed, not validated."""
        found = map(PREDICTION_NAME.fullmatch, self._files.names("predictions"))
        return frozenset(match["key"] for match in found if match)

    def remove(self, keys: Iterable[str]) -> int:
        """Remove the predictions of some stages and return the number of bytes freed."""
        sizes = self.sizes(keys)
        for key in sizes:
            self._files.remove(prediction_name(key))
        return sum(sizes.values())

    def sizes(self, keys: Iterable[str]) -> Mapping[str, int]:
        """Return the size in bytes of the predictions of each stage that has any."""
        names = {prediction_name(key): key for key in keys}
        return {names[name]: size for name in names if (size := self._files.size(name)) is not None}

    def verify(self) -> tuple[str, ...]:
        """Read all predictions and quarantine damaged ones.

        Returns:
            One line per damaged file; empty if there is none.
        """
        faults = []
        for key in sorted(self.keys()):
            for name, data in self._files.read_present([prediction_name(key)]):
                if isinstance(data, UnreadableError):
                    self._sealed.quarantine(name, str(data))
                    faults.append(f"{name}: damaged")
                    continue
                header, _, content = data.partition(b"\n")
                if not _is_sound(key, header, content):
                    self._sealed.quarantine(name, "does not match its own sha256")
                    faults.append(f"{name}: damaged")
        return tuple(faults)


def _header(key: str, record: EpochRecord, content: bytes) -> bytes:
    plain = json.dumps(record.to_plain(), sort_keys=True).encode()
    digests = hashlib.sha256(content).hexdigest(), hashlib.sha256(plain).hexdigest()
    return f"mixsweep predictions of stage {key} {digests[0]} {digests[1]}\n".encode()


def _is_sound(key: str, header: bytes, content: bytes) -> bool:
    """Return whether a file is undamaged; its record is not compared."""
    start = f"mixsweep predictions of stage {key} {hashlib.sha256(content).hexdigest()} ".encode()
    return header.startswith(start)
