"""SealedFiles: files of a store that contain their own checksum; manifests and failures.

    stages/<2 hex>/<key>.json    records, facts, environment, checksum of the state
    failures/<run key>.json      message, epoch and number of attempts
    quarantine/                  damaged files, without their folders; equal names get a number

A damaged file is moved to `quarantine/` when it is read, and then counts as missing. A stage
counts as stored once its manifest exists; a state without a manifest does not count.
"""

import dataclasses
import errno
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from mixup_core.store.errors import UnreadableError
from mixup_core.store.files import Files
from mixup_core.store.json_records import RecordError, record_of
from mixup_core.store.manifests import (
    FAILURE_NAME,
    FORMAT,
    Failure,
    FormatError,
    Stage,
    check_epochs,
    failure_name,
    is_manifest,
    seal,
    unseal,
)

_Kind = TypeVar("_Kind", Stage, Failure)
_Any = TypeVar("_Any")
_logger = logging.getLogger(__name__)


class SealedFiles:
    """Reads, validates, writes and removes files of a store; moves damaged files to quarantine.

    Anything that is not a regular file (a folder, a FIFO, a broken link) counts as damaged and is
    moved without being opened.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def keys(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the keys in the names of all files of one kind; no file is validated."""
        found = map(pattern.fullmatch, self._files.names(pattern.pattern.partition("/")[0]))
        return [match["key"] for match in found if match]

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, without validation; None if it is missing or no file."""
        try:
            return self._files.read(name)
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            self.quarantine(name, str(error))
            return None

    def content(self, name: str) -> dict[str, Any] | None:
        """Return the parsed content of a sealed file; None if it is missing or damaged."""
        return dict(self.parsed({name: name}, unsealed)).get(name)

    def records(self, kind: type[_Kind], names: Mapping[str, str]) -> dict[str, _Kind]:
        """Return the undamaged records of a kind by key; `names` maps names of files to keys."""
        found = self.parsed(names, lambda name, data: record_in(kind, name, data, names[name]))
        return {key: record for key, record in found if record is not None}

    def are_sound(self, names: Mapping[str, str]) -> set[str]:
        """Return the keys of undamaged manifests, most of which this does not parse."""

        def is_sound(name: str, data: bytes) -> bool:
            key = names[name]
            return is_manifest(data, key) or record_in(Stage, name, data, key) is not None

        return {key for key, sound in self.parsed(names, is_sound) if sound}

    def parsed(
        self, names: Mapping[str, str], parse: Callable[[str, bytes], _Any]
    ) -> Iterator[tuple[str, _Any | None]]:
        """Yield (key, parsed content) of each file; move a damaged one away and yield (key, None).

        `names` maps names of files to keys; `parse` takes the name and the bytes of a file.
        """
        for name, data in self._files.read_present(names):
            found = None
            if isinstance(data, UnreadableError):
                self.quarantine(name, str(data))
            else:
                try:
                    found = parse(name, data)
                except RecordError as error:
                    self.quarantine(name, str(error), data)
            yield names[name], found

    def write(self, name: str, data: bytes) -> None:
        """Write a file, replacing a file; move a folder of this name to quarantine."""
        try:
            self._files.write(name, data)
        except IsADirectoryError:
            self.quarantine(name, "is no file")
            self._files.write(name, data)

    def remove(self, name: str) -> None:
        """Remove a file; move a folder of this name, with its files, to quarantine."""
        try:
            self._files.remove(name)
        except IsADirectoryError:
            self.quarantine(name, "is no file")

    def clear(self, name: str) -> None:
        """Remove a file, unless it is temporary and a process is still writing it."""
        if not (name.endswith(".tmp") and self._files.is_being_written(name)):
            self.remove(name)

    def quarantine(self, name: str, reason: str, content: bytes | None = None) -> None:
        """Move a damaged file to `quarantine/` and log its name and the reason."""
        try:
            aside = put_aside(self._files, name)
        except FileNotFoundError:
            return  # another reader was faster
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise
            _logger.warning("%s %s; it cannot be moved and is ignored", name, reason)
            return
        moved = content
        with suppress(FileNotFoundError, UnreadableError):
            moved = None if content is None else self._files.read(aside)
        if moved is not None and moved != content:  # written since it was read
            self._files.create(name, moved)
            return
        _logger.warning("%s %s; moved to quarantine", name, reason)

    def quarantined(self) -> tuple[str, ...]:
        """Return the names of the damaged files in `quarantine/`, sorted."""
        return tuple(sorted(self._files.names("quarantine")))


def known(keys: Iterable[str], read: Callable[[str], _Any]) -> Iterator[tuple[str, _Any]]:
    """Yield each key and what is read of it; skip records of newer formats and log the first."""
    newer = []
    for key in keys:
        try:
            found = read(key)
        except FormatError as error:
            newer.append(error)
        else:
            yield key, found
    if newer:
        more = f", and {len(newer) - 1} more records" if newer[1:] else ""
        _logger.warning("skipped: %s%s", newer[0], more)


def unsealed(name: str, sealed: bytes) -> dict[str, Any]:
    """Return the parsed content of a manifest or failure file."""
    content = unseal(sealed)
    if content is None:
        raise RecordError("does not match its own sha256")
    if content["format"] > FORMAT:
        raise FormatError(
            f"{name}: store format {content['format']}, this program reads formats up to {FORMAT}: "
            "install a newer version of mixsweep"
        )
    return content


def record_in(kind: type[_Kind], name: str, sealed: bytes, key: str) -> _Kind:
    """Return the record (`Stage`, `Failure`) of a key in a manifest or failure file."""
    found = record_of(kind, unsealed(name, sealed))
    if isinstance(found, Stage):
        check_epochs(found.records, found.facts)
    of = found.key if isinstance(found, Stage) else found.run_key
    if of != key:
        raise RecordError(f"is the record of another key, {of}")
    return found


def put_aside(files: Files, name: str) -> str:
    """Move a file of a store to `quarantine/` and return its new name.

    If this name is in use in `quarantine/`, by a file or a folder, a number is added: `x.json.1`.
    """
    first = f"quarantine/{Path(name).name}"
    names = (f"{first}.{number}" if number else first for number in count())
    aside = next(name for name in names if not files.is_taken(name))
    files.move(name, aside)
    return aside


class FailureStore:
    """Reads and writes the causes of runs that ended early, by run key. The object is stateless."""

    def __init__(self, files: Files) -> None:
        self._sealed = SealedFiles(files)

    def write(self, failure: Failure) -> None:
        """Store the failure of a run, replacing an earlier failure of this run."""
        self._sealed.write(failure_name(failure.run_key), seal(dataclasses.asdict(failure)))

    def keys(self) -> frozenset[str]:
        """Return the run keys under which failures are stored; no file is validated."""
        return frozenset(self._sealed.keys(FAILURE_NAME))

    def read_all(self, keys: Iterable[str] | None = None) -> Mapping[str, Failure]:
        """Return stored failures by run key; damaged files are moved to quarantine."""
        names = {failure_name(key): key for key in sorted(self.keys() if keys is None else keys)}
        return self._sealed.records(Failure, names)

    def remove(self, run_key: str) -> None:
        """Remove the stored failure of a run, if there is one."""
        self._sealed.remove(failure_name(run_key))

    def verify(self) -> tuple[str, ...]:
        """Read the files of all failures of runs, and move damaged ones to `quarantine/`."""
        found = known(sorted(self.keys()), lambda key: self.read_all([key]))
        return tuple(f"{failure_name(key)}: damaged" for key, failure in found if not failure)
