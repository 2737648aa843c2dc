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
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.files import Folder
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

    def __init__(self, store: Path, study: str, command: str) -> None:
        """Acquire the lease."""
        self.is_lost = False
        """True once the lock file was found deleted, replaced or moved."""
        self._files = _LeaseFiles.of(store, study)
        self._study = study
        lock = _lock(self._files, study)
        try:
            self.holder = Holder.here(_next_token(self._files, lock), command)
            self._write_holder()
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
    def latest(store: Path, study: str) -> Holder | None:
        """Return the record of a study's last driver (training process), which may have ended.

        None if the study never had a driver, or if the record is damaged.
        """
        return _read_holder(_LeaseFiles.of(store, study))

    @staticmethod
    def current(store: Path, study: str) -> Holder | None:
        """Return the record of the driver (process) that trains a study now; None if none does.

        None also if the driver's record is damaged.
        """
        files = _LeaseFiles.of(store, study)
        return _read_holder(files) if _is_locked(files) else None

    @staticmethod
    def lives(store: Path, study: str, token: object) -> bool:
        """Return True if the driver whose lease on a study has this number (token) is alive.

        Also True if a driver is alive whose record is damaged, because this may be its number.
        """
        files = _LeaseFiles.of(store, study)
        holder = _read_holder(files)
        return _is_locked(files) and (holder is None or holder.token == token)

    @staticmethod
    def progress(store: Path, study: str) -> Heartbeat | None:
        """Return the newest progress report of the driver that trains a study now.

        The report lists the runs in training. None if no driver is alive, or if it has not reported
        progress yet.
        """
        holder = FolderLease.current(store, study)
        progress = None if holder is None else _read_progress(_LeaseFiles.of(store, study))
        if holder is None or progress is None or progress.token != holder.token:
            return None
        return progress

    @staticmethod
    def cut_off(store: Path, study: str) -> Heartbeat | None:
        """Return the last progress report of a study's driver if it was killed during training.

        None if the newest driver is running, ended by itself or by an interrupt, or did not train.
        """
        files = _LeaseFiles.of(store, study)
        holder = _read_holder(files)
        progress = _read_progress(files)
        if holder is None or progress is None or progress.token != holder.token:
            return None
        return progress if progress.running and not _is_locked(files) else None

    def is_held(self) -> bool:
        """Return True if this process is still the driver of the study.

        This process has locked `<study>.lock`. While that file is in its place, no other driver
        can have taken over, even if `<study>.json` names another driver.
        """
        return self._lock is not None and not self.is_lost and _is_at(self._files.lock, self._lock)

    def lost(self) -> StudyLostError:
        """Return the error of a driver that has lost its lease."""
        return StudyLostError(
            f"study {self._study!r}: {self._files.lock} was deleted or moved, so this driver has "
            "lost its lease and stops; stored epochs are kept"
        )

    def write_progress(
        self, running: Sequence[RunningRun], seconds_left: float | None = None
    ) -> None:
        """Write the runs in training to the store; also repair a damaged record of this driver."""
        if not self.is_held():
            return  # `_watch` ends this process
        if _read_holder(self._files) != self.holder:
            self._write_holder()
        progress = Heartbeat.now(self.holder.token, running, seconds_left)
        self._has_progress = True
        _write(self._files.progress, json.dumps(dataclasses.asdict(progress)).encode())

    def _write_holder(self) -> None:
        _write(self._files.holder, json.dumps(dataclasses.asdict(self.holder)).encode())

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
        """End the lease, so that another driver can train the study; a second call does nothing."""
        if self._lock is not None:
            self._ends.set()
            with contextlib.suppress(StoreError, OSError):  # a full disk must not keep the lease
                self.is_lost = self.is_lost or not self.is_held()
                if self._has_progress:
                    self.write_progress(())
            os.close(self._lock)
            self._lock = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _LeaseFiles:
    lock: Path
    holder: Path
    progress: Path

    @classmethod
    def of(cls, store: Path, study: str) -> Self:
        folder = store / "leases"
        checked(study)
        return cls(
            lock=folder / f"{study}.lock",
            holder=folder / f"{study}.json",
            progress=folder / f"{study}.progress.json",
        )


def _lock(files: _LeaseFiles, study: str) -> int:
    try:
        lock = open_lock(files.lock)
    except UnreadableError as error:
        _put_aside(files.lock, str(error))
        lock = open_lock(files.lock)
    give_up_at = time.monotonic() + _PATIENCE
    while not _try_lock(files.lock, lock, fcntl.LOCK_EX):
        if time.monotonic() >= give_up_at:
            os.close(lock)
            raise StudyBusyError(study, _read_holder(files))
        time.sleep(0.02)
    if not _is_at(files.lock, lock):  # deleted or moved since it was opened
        os.close(lock)
        return _lock(files, study)
    return lock


def _is_at(path: Path, lock: int) -> bool:
    """Return True if an open file still has its path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(lock))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _is_locked(files: _LeaseFiles) -> bool:
    """Return True if a running driver has locked a study; False if the lock file is not regular."""
    try:
        lock = os.open(files.lock, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            return False
        raise
    try:
        return not _try_lock(files.lock, lock, fcntl.LOCK_SH)
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


def _next_token(files: _LeaseFiles, lock: int) -> int:
    """Return a number larger than the token of each earlier driver of the study."""
    holder = _read_holder(files)
    if holder is not None and holder.token < _MOST_DRIVERS:
        return holder.token + 1
    if not os.path.lexists(files.holder):  # a damaged one is named where it is read
        if not os.fstat(lock).st_size:
            return 1
        _logger.warning("%s is missing; it is written again", files.holder)
    return int(time.time())


def _read_holder(files: _LeaseFiles) -> Holder | None:
    content = _read(files.holder)
    return None if content is None else record_in_note(Holder, files.holder, content)


def _read_progress(files: _LeaseFiles) -> Heartbeat | None:
    content = _read(files.progress)
    return None if content is None else record_in_note(Heartbeat, files.progress, content)


def _read(path: Path) -> bytes | None:
    """Return the bytes of a file; empty if it cannot be read, None if it does not exist."""
    try:
        return read_regular(path, _LARGEST)
    except FileNotFoundError:
        return None
    except UnreadableError:
        return b""


def _write(path: Path, content: bytes) -> None:
    """Write a file; if its path is a folder, move that folder to `quarantine/` first."""
    store = path.parent.parent
    try:
        write_durably(path, content, top=store)
    except IsADirectoryError:
        _put_aside(path, "is no file")
        write_durably(path, content, top=store)


def _put_aside(path: Path, reason: str) -> None:
    store = Folder(path.parent.parent)
    put_aside(store, f"{path.parent.name}/{path.name}")
    _logger.warning("%s %s; moved to quarantine", path, reason)
