"""BucketLease: a lock in an object store that gives each study one driver at a time.

    leases/<study>/<token>.json     the driver; written once: if two drivers create it, one succeeds
    leases/<study>/<token>.beat     a counter and a progress report; each write is a heartbeat

A token is the number of a lease; each driver of a study gets a larger one. The object store must be
able to refuse a second creation of the same object.

A process that sees no heartbeat of the driver for 30 seconds may take over the study: it creates
the next token. It measures these seconds with its own monotonic clock; clocks of two machines are
never compared. The old driver relies on its lease for a shorter time after its last heartbeat, so
it stops writing before another driver may take over. If it finds a newer token, it interrupts its
own process. If the process is suspended during a write, this write may end after another driver has
taken over. That is harmless: a stage that is stored already is kept, and MLflow gets a metric's
value with the epoch and time that the store has, so that a second copy is equal to the first.

The token is part of the object names, so a damaged object cannot change it. A driver whose record
is damaged keeps the study as long as it sends heartbeats.
"""

import contextlib
import dataclasses
import json
import os
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mixup_core.store.errors import StoreError
from mixup_core.store.files import Bucket, Files
from mixup_core.store.json_records import Natural, parse_note, record_in_note
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
_BEAT_EVERY = 2.0
_EXPIRY = 30.0
"""Seconds without a change of the heartbeat after which another driver may take over."""
_BELIEF = 20.0
"""Seconds for which a driver may still write after its last heartbeat."""
_SILENCE = 6.0
"""Seconds without a heartbeat after which `mixsweep status` shows a study as not running."""
_TO_RELEASE = 3.0
"""Longest wait, in seconds, for the last heartbeat, which says that the lease has ended."""
_LOOK_EVERY = 0.25
_SUSPENDS_TOO = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Clock that keeps counting while the machine is suspended, if the system has one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Beat:
    beats: Natural
    released: bool
    progress: Heartbeat | None


class BucketLease:
    """The right to train a study whose store is in a bucket; a background thread renews it."""

    def __init__(self, files: Files, study: str, command: str) -> None:
        self.is_lost = False
        """True once another driver has taken over the study."""
        self._successor: Holder | None = None
        self._files = files
        self._study = checked(study)
        if not (isinstance(files, Bucket) and files.creates_atomically):
            raise StoreError(
                "this kind of store cannot guarantee that only one driver trains a study: use a "
                "folder that every machine can write to, or s3://, gs:// or abfs://."
            )
        last = _newest(files, study)
        has_died = _has_died_here(_read(files, _holder_name(study, last)) or {})
        if not has_died and _lives(files, study, last, _EXPIRY):
            raise StudyBusyError(study, _read_holder(files, study, last))
        self.holder = Holder.here(last + 1, command)
        self._take(study)
        self._running: tuple[RunningRun, ...] = ()
        self._seconds_left: float | None = None
        self._beats = 0
        self._ends = threading.Event()
        self._believed_at = time.clock_gettime(_SUSPENDS_TOO)
        self._beat()
        self._thread = threading.Thread(target=self._keep_beating, name="lease", daemon=True)
        self._thread.start()

    @staticmethod
    def latest(files: Files, study: str) -> Holder | None:
        token = _newest(files, study)
        return _read_holder(files, study, token) if token else None

    @staticmethod
    def current(files: Files, study: str) -> Holder | None:
        """Return the driver; this takes some seconds if it sends no heartbeat."""
        token = _newest(files, study)
        return _read_holder(files, study, token) if _lives(files, study, token, _SILENCE) else None

    @staticmethod
    def lives(files: Files, study: str, token: object) -> bool:
        newest = _newest(files, study)
        return newest == token and _lives(files, study, newest, _SILENCE)

    @staticmethod
    def progress(files: Files, study: str) -> Heartbeat | None:
        token = _newest(files, study)
        if not _lives(files, study, token, _SILENCE):
            return None
        beat = _record(_Beat, files, _beat_name(study, token))
        return None if beat is None else beat.progress

    @staticmethod
    def cut_off(files: Files, study: str) -> None:
        """Return None: the end of a driver on another machine is not seen in a bucket."""

    def is_held(self) -> bool:
        """Return True if the last heartbeat is recent; the bucket is not read."""
        age = time.clock_gettime(_SUSPENDS_TOO) - self._believed_at
        return not self.is_lost and not self._ends.is_set() and age < _BELIEF

    def lost(self) -> StudyLostError:
        by = self._successor or "another process"
        return StudyLostError(f"study {self._study!r} was taken over by {by}; this driver stops")

    def write_progress(
        self, running: Sequence[RunningRun], seconds_left: float | None = None
    ) -> None:
        """Set the progress that the next heartbeat will write to the bucket."""
        self._running, self._seconds_left = tuple(running), seconds_left

    def release(self) -> None:
        if self._ends.is_set():
            return
        self._ends.set()
        last = threading.Thread(target=self._beat_last, daemon=True)
        last.start()
        last.join(_TO_RELEASE)  # an unreachable bucket is retried for minutes

    def _beat_last(self) -> None:
        self._thread.join()
        if not self.is_lost:
            with contextlib.suppress(StoreError):  # on failure, the next driver must wait
                self._beat()

    def _take(self, study: str) -> None:
        name = _holder_name(study, self.holder.token)
        mark = os.urandom(8).hex()  # processes in two containers may have equal records
        record = {**dataclasses.asdict(self.holder), "mark": mark, "namespace": _namespace()}
        if not self._files.create(name, json.dumps(record).encode()):
            raise StudyBusyError(study, _read_holder(self._files, study, self.holder.token))
        if self._files.create(name, b"{}"):
            self._files.remove(name)
            raise StoreError(
                "the object store ignores `If-None-Match`, so it cannot guarantee that only one "
                "driver trains a study: use another object store, or a folder"
            )
        newest = _newest(self._files, study)
        if newest != self.holder.token:  # another driver was faster
            self._files.remove(name)
            raise StudyBusyError(study, _read_holder(self._files, study, newest))
        for old, token in _tokens(self._files, study).items():
            if token < self.holder.token:
                self._files.remove(old)

    def _keep_beating(self) -> None:
        while not self._ends.wait(_BEAT_EVERY):
            began = time.clock_gettime(_SUSPENDS_TOO)
            with contextlib.suppress(StoreError):  # tried again; `is_held` becomes False in time
                newest = _newest(self._files, self._study)
                if newest > self.holder.token:
                    self._successor = _read_holder(self._files, self._study, newest)
                    self.is_lost = True
                    if not self._ends.is_set():  # else the main thread may be at the next study
                        interrupt_main_thread((str(self.lost()), BUSY))
                    return
                self._beat()
                # Not the time of the answer: others count from the write, which was earlier.
                self._believed_at = began

    def _beat(self) -> None:
        self._beats += 1
        running = Heartbeat.now(self.holder.token, self._running, self._seconds_left)
        beat = _Beat(
            beats=self._beats,
            released=self._ends.is_set(),
            progress=running if self._running else None,
        )
        name = _beat_name(self._study, self.holder.token)
        self._files.write(name, json.dumps(dataclasses.asdict(beat)).encode())


def _lives(files: Files, study: str, token: int, patience: float) -> bool:
    """Return True if the heartbeat of the lease with a token changes within `patience` seconds."""
    name = _beat_name(study, token)
    if not token:
        return False
    first = _read(files, name)
    give_up_at = time.monotonic() + patience
    while not (first or {}).get("released"):
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(_LOOK_EVERY)
        beat = _read(files, name)
        if beat != first:
            return beat is not None and not beat.get("released")
    return False


def _has_died_here(record: dict[str, Any]) -> bool:
    """Return True if a driver was a process of this machine that no longer exists."""
    this_process = Holder.here(0, "")
    is_near = this_process.boot_id is not None and record.get("boot_id") == this_process.boot_id
    is_seen = _namespace() is not None and record.get("namespace") == _namespace()
    pid = record.get("pid")
    return is_near and is_seen and isinstance(pid, int) and pid > 0 and not _is_used(pid)


def _is_used(pid: int) -> bool:
    """Return True if a process has this id. `/proc` may hide processes; the kernel does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _namespace() -> str | None:
    """Return the Linux pid namespace of this process; None if the system does not report it."""
    with contextlib.suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return None


def _newest(files: Files, study: str) -> int:
    """Return the largest token of a study, that of its newest driver; 0 if it never had one."""
    return max(_tokens(files, study).values(), default=0)


def _tokens(files: Files, study: str) -> dict[str, int]:
    """Return the token of each lease object of a study, by object name."""
    names = list(files.names(_folder(study)))
    return {name: int(match[1]) for name in names if (match := _TOKEN.search(name))}


_TOKEN = re.compile(r"/(\d+)\.(?:json|beat)$")


def _read_holder(files: Files, study: str, token: int) -> Holder | None:
    return _record(Holder, files, _holder_name(study, token))


def _record(kind: type[_Kind], files: Files, name: str) -> _Kind | None:
    try:
        return record_in_note(kind, name, files.read(name))
    except FileNotFoundError:
        return None


def _read(files: Files, name: str) -> dict[str, Any] | None:
    """Return a JSON record of the bucket; empty if it is damaged, None if it does not exist."""
    try:
        return parse_note(files.read(name)) or {}
    except FileNotFoundError:
        return None


def _folder(study: str) -> str:
    # Frozen: names of lease objects. Drivers of two versions would not see each other and train one
    # study at the same time; tests/sweeps/leasing/test_bucket_lease.py fails.
    return f"leases/{checked(study)}"


def _holder_name(study: str, token: int) -> str:
    return f"{_folder(study)}/{token}.json"


def _beat_name(study: str, token: int) -> str:
    return f"{_folder(study)}/{token}.beat"
