"""FolderLease: a kernel lock that gives each study one driver at a time.

    leases/<study>.lock             locked with `flock` by the driver; empty before the first one
    leases/<study>.json             the holder: driver process and token; kept after it has ended
    leases/<study>.progress.json    the runs in training, written by the holder

A token is the number of a lease; each driver of a study gets a larger one.

The kernel releases the lock when the driver ends for any reason, but not while the driver is
suspended. A child that was forked without exec would inherit the lock: start children with
`subprocess`. On a shared folder the lock works if the file system passes `flock` to its server: NFS
4 does (unless mounted with `local_lock`), Lustre with the mount option `flock`. If locks stay
local, two machines can drive one study at the same time.

The lock is on the file, not on its name. If the file is deleted, replaced or moved, for example
with its home, the driver has lost its lease: a thread notices it and interrupts the process.

A damaged record is ignored and written again. The next token is then the time in seconds, which is
larger than the number of drivers of any study.
"""

import contextlib
import dataclasses
import errno
import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.files import Files, Folder
from mixup_core.store.json_records import record_in_note
from mixup_core.store.local_files import open_lock, read_regular, write_durably
from mixup_core.store.sealed_files import put_aside
from sweeps.leasing.holders import (
    BUSY,
    Heartbeat,
    Holder,
    RunningRun,
    StudyBusyError,
    StudyLostError,
    checked,
)
from sweeps.machine.signals import interrupt_main_thread

_Kind = TypeVar("_Kind")
_PATIENCE = 0.5
"""Seconds for which an attempt to lock is repeated. `current` locks the file for a moment too, and
a new driver needs a moment to write its record."""
_LOOK_EVERY, _MISSES = 0.5, 2
"""Seconds between two looks at the lock file, and number of looks at which it must be missing."""
_MOST_DRIVERS = 2**62
"""A larger token was forged; a token one above the largest number that is read could not be read.
"""
_LARGEST = 2**20
"""Largest number of bytes that are read of a file. A progress file with a thousand runs has a tenth
of this size."""

_logger = logging.getLogger(__name__)


class FolderLease:
    """The right to train a study whose store is a folder; valid while this process locks a file."""

    def __init__(self, files: Files, study: str, command: str) -> None:
        self.is_lost = False
        """True once the lock file was found deleted, replaced or moved."""
        self._place, self._study = _place(files, study), study
        lock = _lock(self._place)
        try:
            self.holder = Holder.here(_next_token(self._place, lock), command)
            self._write(".json", self.holder)
            with contextlib.suppress(OSError):  # a full disk: the record is enough
                os.pwrite(lock, b"had a driver\n", 0)
        except BaseException:
            os.close(lock)
            raise
        self._lock: int | None = lock
        self._has_progress = False
        self._ends = threading.Event()
        threading.Thread(target=self._watch, name="lease", daemon=True).start()

    @staticmethod
    def latest(files: Files, study: str) -> Holder | None:
        return _holder(_place(files, study))

    @staticmethod
    def current(files: Files, study: str) -> Holder | None:
        place = _place(files, study)
        return _holder(place) if _is_locked(place) else None

    @staticmethod
    def lives(files: Files, study: str, token: object) -> bool:
        place = _place(files, study)
        holder = _holder(place)
        return _is_locked(place) and (holder is None or holder.token == token)

    @staticmethod
    def progress(files: Files, study: str) -> Heartbeat | None:
        place = _place(files, study)
        return _progress(place) if _is_locked(place) else None

    @staticmethod
    def cut_off(files: Files, study: str) -> Heartbeat | None:
        place = _place(files, study)
        last = _progress(place)
        return last if last and last.running and not _is_locked(place) else None

    def is_held(self) -> bool:
        """Return True while the locked file is in its place, whatever the record says."""
        path = _lock_file(self._place)
        return self._lock is not None and not self.is_lost and _is_at(path, self._lock)

    def lost(self) -> StudyLostError:
        return StudyLostError(
            f"study {self._study!r}: {_lock_file(self._place)} was deleted or moved, so this "
            "driver has lost its lease and stops; stored epochs are kept"
        )

    def write_progress(
        self, running: Sequence[RunningRun], seconds_left: float | None = None
    ) -> None:
        """Write the runs in training to the store; also repair a damaged record of this driver."""
        if not self.is_held():
            return  # `_watch` ends this process
        if _holder(self._place) != self.holder:
            self._write(".json", self.holder)
        self._has_progress = True
        self._write(".progress.json", Heartbeat.now(self.holder.token, running, seconds_left))

    def _write(self, suffix: str, record: Holder | Heartbeat) -> None:
        """Write a file; if its path is a folder, move that folder to `quarantine/` first."""
        path, content = self._place.with_suffix(suffix), json.dumps(dataclasses.asdict(record))
        store = path.parent.parent
        try:
            write_durably(path, content.encode(), top=store)
        except IsADirectoryError:
            _put_aside(path, "is no file")
            write_durably(path, content.encode(), top=store)

    def _watch(self) -> None:
        misses = 0
        while misses < _MISSES:
            if self._ends.wait(_LOOK_EVERY):
                return
            with contextlib.suppress(OSError):  # a server that does not answer; looked at again
                misses = 0 if self.is_held() else misses + 1
        self.is_lost = True
        if not self._ends.is_set():  # else the main thread may be at the next study
            interrupt_main_thread((str(self.lost()), BUSY))

    def release(self) -> None:
        if self._lock is not None:
            self._ends.set()
            with contextlib.suppress(StoreError, OSError):  # a full disk must not keep the lease
                self.is_lost = self.is_lost or not self.is_held()
                if self._has_progress:
                    self.write_progress(())
            os.close(self._lock)
            self._lock = None


def _place(files: Files, study: str) -> Path:
    """Return the path of the files of a lease, without their suffixes."""
    assert isinstance(files, Folder), "a bucket has leases of another kind"
    # Frozen: names of lease files. Drivers of two versions would lock different files and train one
    # study at the same time; tests/contracts/test_homes.py fails.
    return files.root / "leases" / checked(study)


def _lock_file(place: Path) -> Path:
    return place.with_suffix(".lock")


def _lock(place: Path) -> int:
    path = _lock_file(place)
    try:
        lock = open_lock(path)
    except UnreadableError as error:
        _put_aside(path, str(error))
        lock = open_lock(path)
    give_up_at = time.monotonic() + _PATIENCE
    while not _try_lock(path, lock, fcntl.LOCK_EX):
        if time.monotonic() >= give_up_at:
            os.close(lock)
            raise StudyBusyError(place.name, _holder(place))
        time.sleep(0.02)
    if not _is_at(path, lock):  # deleted or moved since it was opened
        os.close(lock)
        return _lock(place)
    return lock


def _is_at(path: Path, lock: int) -> bool:
    """Return True if an open file still has its path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(lock))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _is_locked(place: Path) -> bool:
    """Return True if a running driver has locked a study; False if the lock file is not regular."""
    try:
        lock = os.open(_lock_file(place), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            return False
        raise
    try:
        return not _try_lock(_lock_file(place), lock, fcntl.LOCK_SH)
    except _LockingError:
        return False  # no driver can hold a lease there
    finally:
        os.close(lock)


class _LockingError(StoreError):
    """The file system of a store has no locks."""


def _try_lock(path: Path, lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _LockingError(
            f"{path}: this file system cannot lock files ({error.strerror}), so two drivers could "
            "train one study; mount it with locks, or give --store another folder or a bucket"
        ) from error
    return True


def _next_token(place: Path, lock: int) -> int:
    """Return a number larger than the token of each earlier driver of the study."""
    holder, path = _holder(place), place.with_suffix(".json")
    if holder is not None and holder.token < _MOST_DRIVERS:
        return holder.token + 1
    if not os.path.lexists(path):  # a damaged one is named where it is read
        if not os.fstat(lock).st_size:
            return 1
        _logger.warning("%s is missing; it is written again", path)
    return int(time.time())


def _holder(place: Path) -> Holder | None:
    return _record(Holder, place.with_suffix(".json"))


def _progress(place: Path) -> Heartbeat | None:
    """Return the last report of the last driver."""
    holder, last = _holder(place), _record(Heartbeat, place.with_suffix(".progress.json"))
    return last if holder and last and last.token == holder.token else None


def _record(kind: type[_Kind], path: Path) -> _Kind | None:
    try:
        return record_in_note(kind, path, read_regular(path, _LARGEST))
    except FileNotFoundError:
        return None
    except UnreadableError:
        return record_in_note(kind, path, b"")


def _put_aside(path: Path, reason: str) -> None:
    put_aside(Folder(path.parent.parent), f"{path.parent.name}/{path.name}")
    _logger.warning("%s %s; moved to quarantine", path, reason)
