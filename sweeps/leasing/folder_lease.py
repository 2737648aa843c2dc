"""FolderLease: one driver per study, held by a lock that the kernel keeps.

    leases/<study>.lock             held with `flock` by the driver; empty
    leases/<study>.json             the holder; kept afterwards, so that tokens keep growing
    leases/<study>.progress.json    the runs in training, written by the holder

The kernel frees the lock when its holder dies, however it dies, and not while it is only stopped.
A child that was forked without exec would keep it: start children with `subprocess`. On a shared
folder this holds if its file system passes `flock` on to its server: NFS 4 does (not mounted with
`local_lock`), Lustre with the mount option `flock`. Where locks stay local, two machines can drive
one study at once.
"""

import dataclasses
import fcntl
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mixup_core.store.files import make_private_folder, write_durably
from sweeps.leasing.holders import Holder, Progress, RunningRun, StudyBusyError, checked

_PATIENCE = 0.5
"""Seconds for which a held lock is tried again: `current` takes it for an instant, and a new
holder needs one to write who it is."""


class FolderLease:
    """The lease of a study whose store is a folder."""

    successor = None
    """Nobody takes over while the kernel keeps the lock."""

    def __init__(self, store: Path, study: str, command: str) -> None:
        """Take it.

        Raises:
            StudyBusyError: If another driver holds it.
            StoreFullError: If the disk is full.
            ValueError: If the name is no study name.
        """
        self._files = _LeaseFiles.of(store, study)
        lock = _lock(self._files, study)
        try:
            last = _read_holder(self._files)
            self.holder = Holder.here(1 if last is None else last.token + 1, command)
            content = json.dumps(dataclasses.asdict(self.holder))
            write_durably(self._files.holder, content.encode())
        except BaseException:
            os.close(lock)
            raise
        self._lock: int | None = lock

    @staticmethod
    def latest(store: Path, study: str) -> Holder | None:
        """Return whoever took the lease last, living or not."""
        return _read_holder(_LeaseFiles.of(store, study))

    @staticmethod
    def current(store: Path, study: str) -> Holder | None:
        """Return the living driver of a study, if it has one."""
        files = _LeaseFiles.of(store, study)
        return _read_holder(files) if _is_locked(files) else None

    @staticmethod
    def progress(store: Path, study: str) -> Progress | None:
        """Return what the driver of a study is doing; None if none lives or it has not said."""
        holder = FolderLease.current(store, study)
        content = None if holder is None else _read_json(_LeaseFiles.of(store, study).progress)
        if holder is None or content is None or content["token"] != holder.token:
            return None
        return Progress.from_plain(content)

    def is_held(self) -> bool:
        """Return whether this is still the newest driver."""
        return self._lock is not None and _read_holder(self._files) == self.holder

    def write_progress(self, running: Sequence[RunningRun]) -> None:
        """Say which runs are in training."""
        progress = Progress.now(self.holder.token, running)
        write_durably(self._files.progress, json.dumps(progress.to_plain()).encode())

    def release(self) -> None:
        """Let the next driver in; a second call does nothing."""
        if self._lock is not None:
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
    make_private_folder(files.lock.parent)
    lock = os.open(files.lock, os.O_RDWR | os.O_CREAT, 0o600)
    give_up_at = time.monotonic() + _PATIENCE
    while not _try_lock(lock, fcntl.LOCK_EX):
        if time.monotonic() >= give_up_at:
            os.close(lock)
            raise StudyBusyError(study, _read_holder(files))
        time.sleep(0.02)
    return lock


def _is_locked(files: _LeaseFiles) -> bool:
    try:
        lock = os.open(files.lock, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(lock, fcntl.LOCK_SH)
    finally:
        os.close(lock)


def _try_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(files: _LeaseFiles) -> Holder | None:
    content = _read_json(files.holder)
    return None if content is None else Holder(**content)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return content
