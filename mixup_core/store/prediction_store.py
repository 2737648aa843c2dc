"""PredictionStore: the predictions of finished runs in a store.

    predictions/<2 hex>/<stage key>.bin    header line, then the predictions

The header has the stage key and the sha256 of the predictions, which suffice to validate the file,
and the sha256 of the run's last record, for which alone the predictions are valid. No other file
refers to a prediction file. A run can count as finished without predictions.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from mixup_core.records import EpochRecord
from mixup_core.store.files import Files
from mixup_core.store.json_records import RecordError
from mixup_core.store.manifests import PREDICTION_NAME, prediction_name
from mixup_core.store.sealed_files import SealedFiles


class PredictionStore:
    """Reads and writes predictions of finished runs, by the key of the last stage of a run."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._sealed = SealedFiles(files)

    def write(self, key: str, record: EpochRecord, content: bytes) -> None:
        """Store the predictions of a run by its last stage, unless those of this record exist."""
        if self.read(key, record) is not None:
            return
        data = _start(key, content) + _digest(record) + b"\n" + content
        if not self._files.create(prediction_name(key), data):
            # It exists, but is damaged or belongs to another record.
            self._files.write(prediction_name(key), data)

    def read(self, key: str, record: EpochRecord) -> bytes | None:
        """Return the predictions of a finished run; None if they are missing or damaged."""
        return self.read_all({key: record}).get(key)

    def read_all(self, records: Mapping[str, EpochRecord]) -> Mapping[str, bytes]:
        """Return the predictions by stage key, but for damaged ones and those of another record."""
        found = self._present(records)
        return {key: of[1] for key, of in found if of and of[0] == _digest(records[key])}

    def _present(self, keys: Iterable[str]) -> Iterator[tuple[str, tuple[bytes, bytes] | None]]:
        """Yield (key, (digest of its record, content)) of each file; (key, None) if damaged."""
        names = {prediction_name(key): key for key in keys}

        def parse(name: str, data: bytes) -> tuple[bytes, bytes]:
            header, _, content = data.partition(b"\n")
            start = _start(names[name], content)
            if not header.startswith(start):
                raise RecordError("does not match its own sha256")
            return header.removeprefix(start), content

        return self._sealed.parsed(names, parse)

    def keys(self) -> frozenset[str]:
        """Return the stage keys under which predictions are stored; no file is validated."""
        return frozenset(self._sealed.keys(PREDICTION_NAME))

    def remove(self, keys: Iterable[str]) -> int:
        """Remove the predictions under the given stage keys; return the number of bytes freed."""
        sizes = self.sizes(keys)
        for key in sizes:
            self._files.remove(prediction_name(key))
        return sum(sizes.values())

    def sizes(self, keys: Iterable[str]) -> Mapping[str, int]:
        """Return the size in bytes of the predictions under each given stage key that has any."""
        names = {prediction_name(key): key for key in keys}
        return {names[name]: size for name in names if (size := self._files.size(name)) is not None}

    def verify(self) -> tuple[str, ...]:
        """Read the files of all predictions, and move damaged ones to `quarantine/`."""
        found = (part for key in sorted(self.keys()) for part in self._present([key]))
        return tuple(f"{prediction_name(key)}: damaged" for key, of in found if of is None)


# Frozen: the start of a stored file, and the JSON text of a record whose hash follows. After a
# change, stored results cannot be read; tests/contracts/test_homes.py fails.
def _start(key: str, content: bytes) -> bytes:
    return f"mixsweep predictions of stage {key} {hashlib.sha256(content).hexdigest()} ".encode()


def _digest(record: EpochRecord) -> bytes:
    plain = json.dumps(record.to_plain(), sort_keys=True).encode()
    return hashlib.sha256(plain).hexdigest().encode()
