"""Lease: one driver per study, and what that driver says it is doing.

    leases/<study>.lock             held with `flock` by the driver; empty
    leases/<study>.json             the holder; kept afterwards, so that tokens keep growing
    leases/<study>.progress.json    the runs in training, written by the holder

The kernel frees the lock when its holder dies, however it dies, and not while it is only stopped.
A child that was forked without exec would keep it: start children with `subprocess`.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mixup_core.checkpoints import Store, StoreError, make_private_folder, write_durably

_PATIENCE = 0.5
"""Seconds for which a held lock is tried again: `Lease.current` takes it for an instant, and a new
holder needs one to write who it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """The driver of a study."""

    token: int
    """Fencing number: 1 for the first driver of the study, one more for each after it."""
    host: str
    boot_id: str | None
    """Names one boot of the host; None where the system has no such name."""
    pid: int
    started_at_ms: int
    """Unix time in ms at which the driver took the lease."""
    command: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningRun:
    """A run in training."""

    arm: str
    seed: int
    epoch: int
    """0-based epoch being trained."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What the driver of a study was doing a moment ago."""

    token: int
    running: tuple[RunningRun, ...]
    updated_at_ms: int
    """Unix time in ms."""


class StudyBusyError(Exception):
    """Another driver holds the study."""

    holder: Holder | None
    """None if it has not yet written who it is."""

    def __init__(self, study: str, holder: Holder | None) -> None:
        by = "another process"
        if holder is not None:
            since = _clock_time(holder.started_at_ms)
            by = f"pid {holder.pid} on {holder.host} since {since} (token {holder.token})"
        super().__init__(f"study {study!r} is driven by {by}; wait for it or stop it first")
        self.holder = holder


class Lease:
    """The right to drive a study, held until `release`, the end of a `with`, or the process's."""

    holder: Holder
    """This driver."""

    def __init__(self, files: "_LeaseFiles", lock: int, holder: Holder) -> None:
        """Wrap a lock that is held; use `acquire`."""
        self._files = files
        self._lock: int | None = lock
        self.holder = holder

    @classmethod
    def acquire(cls, store: Store, study: str, command: str) -> Self:
        """Take the lease of a study.

        Args:
            store: Store in which the study's runs are kept, on a local disk.
            study: Name of the study.
            command: What was started, for whoever finds the study busy.

        Raises:
            StudyBusyError: If another driver holds it.
            StoreError: If the store is in a bucket, or its disk is full.
            ValueError: If the name is no study name.
        """
        if store.folder is None:
            raise StoreError(
                "`the store is a folder` must hold to run a study: leases on object stores are not "
                "supported yet; use a folder that every machine of the study sees."
            )
        files = _LeaseFiles.of(store.folder, study)
        lock = _lock(files, study)
        try:
            last = _read_holder(files)
            holder = Holder(
                token=1 if last is None else last.token + 1,
                host=socket.gethostname(),
                boot_id=_boot_id(),
                pid=os.getpid(),
                started_at_ms=_now_ms(),
                command=command,
            )
            write_durably(files.holder, json.dumps(dataclasses.asdict(holder)).encode())
        except BaseException:
            os.close(lock)
            raise
        return cls(files, lock, holder)

    @classmethod
    def current(cls, store: Store, study: str) -> Holder | None:
        """Return the living driver of a study, if it has one; takes and creates nothing.

        Raises:
            ValueError: If the name is no study name.
        """
        if store.folder is None:
            return None
        files = _LeaseFiles.of(store.folder, study)
        return _read_holder(files) if _is_locked(files) else None

    @property
    def token(self) -> int:
        """Fencing number of this lease; a newer driver's is larger."""
        return self.holder.token

    def is_held(self) -> bool:
        """Return whether this is still the newest driver; ask before deleting anything."""
        return self._lock is not None and _read_holder(self._files) == self.holder

    def write_progress(self, running: Sequence[RunningRun]) -> None:
        """Say which runs are in training; meant for about one call a second.

        Raises:
            StoreFullError: If the disk is full.
        """
        progress = Progress(token=self.token, running=tuple(running), updated_at_ms=_now_ms())
        write_durably(self._files.progress, json.dumps(dataclasses.asdict(progress)).encode())

    def release(self) -> None:
        """Let the next driver in; a second call does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def read_progress(store: Store, study: str) -> Progress | None:
    """Return what the driver of a study is doing; None if none lives or it has not said yet.

    Raises:
        ValueError: If the name is no study name.
    """
    holder = Lease.current(store, study)
    if holder is None or store.folder is None:
        return None
    content = _read_json(_LeaseFiles.of(store.folder, study).progress)
    if content is None or content["token"] != holder.token:
        return None
    running = tuple(RunningRun(**run) for run in content["running"])
    return Progress(token=holder.token, running=running, updated_at_ms=content["updated_at_ms"])


@dataclass(frozen=True, kw_only=True, slots=True)
class _LeaseFiles:
    lock: Path
    holder: Path
    progress: Path

    @classmethod
    def of(cls, store: Path, study: str) -> Self:
        if not re.fullmatch(r"[a-z0-9-]{1,100}", study):
            raise ValueError(f"`study: a-z, 0-9 and -, at most 100` must hold, got ({study=}).")
        folder = store / "leases"
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


def _boot_id() -> str | None:
    with contextlib.suppress(FileNotFoundError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _clock_time(unix_ms: int) -> str:
    """Return the local time of day, with its date unless that is today."""
    moment = datetime.fromtimestamp(unix_ms / 1000).astimezone()
    today = datetime.now().astimezone().date()
    return moment.strftime("%H:%M" if moment.date() == today else "%Y-%m-%d %H:%M")
