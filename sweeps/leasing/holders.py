"""Holder: who drives a study, and what that driver says it is doing."""

import contextlib
import dataclasses
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from mixup_core.store.notes import LATEST_MS, filled


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

    @classmethod
    def here(cls, token: int, command: str) -> Self:
        """Return this process as the holder of a lease."""
        return cls(
            token=token,
            host=socket.gethostname(),
            boot_id=_boot_id(),
            pid=os.getpid(),
            started_at_ms=_now_ms(),
            command=command,
        )

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self | None:
        """Return the value that `dataclasses.asdict` wrote; fields of later versions are ignored.

        None, as if it had not been written, where a field is missing or not of its type.
        """
        found = filled(cls, plain)
        if found is None or found.token < 1 or not 0 <= found.started_at_ms <= LATEST_MS:
            return None
        return found

    def __str__(self) -> str:
        since = _clock_time(self.started_at_ms)
        return f"pid {self.pid} on {self.host} since {since} (token {self.token})"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningRun:
    """A run in training."""

    arm: str
    seed: int
    epoch: int
    """0-based epoch being trained."""
    within: float = 0.0
    """Share of it that is done; 0 if it takes seconds only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """The progress of a driver at its last heartbeat."""

    token: int
    running: tuple[RunningRun, ...]
    updated_at_ms: int
    """Unix time in ms."""
    seconds_left: float | int | None = None
    """Seconds to the end of the launch; None before the first measurement."""

    @classmethod
    def now(
        cls, token: int, running: Sequence[RunningRun], seconds_left: float | None = None
    ) -> Self:
        """Return the heartbeat of this moment."""
        return cls(
            token=token,
            running=tuple(running),
            updated_at_ms=_now_ms(),
            seconds_left=seconds_left,
        )

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self | None:
        """Return the value that `to_plain` wrote; fields of later versions are ignored."""
        return filled(cls, plain)

    def to_plain(self) -> dict[str, Any]:
        """Return values that JSON holds."""
        return dataclasses.asdict(self)


class StudyBusyError(Exception):
    """Another driver holds the study."""

    holder: Holder | None
    """The holder; None if it has not yet written its name."""

    def __init__(self, study: str, holder: Holder | None) -> None:
        by = holder or "another process"
        super().__init__(f"study {study!r} is driven by {by}; wait for it or stop it first")
        self.holder = holder


class StudyLostError(Exception):
    """This driver was silent for so long that another one took its study over."""

    def __init__(self, study: str, holder: Holder | None) -> None:
        by = holder or "another process"
        super().__init__(f"study {study!r} was taken over by {by}; this driver stops")


def checked(study: str) -> str:
    """Return a study's name, which becomes part of paths.

    Raises:
        ValueError: If it is no study name.
    """
    if not re.fullmatch(r"[a-z0-9-]{1,100}", study):
        raise ValueError(f"study must be 1 to 100 characters of a-z, 0-9 and -, got ({study=}).")
    return study


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
