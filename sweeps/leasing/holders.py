"""Holder: a record of the driver of a study (the process that trains it), and of its progress."""

import contextlib
import os
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mixup_core.rules import spell_time
from mixup_core.store.json_records import (
    MOST_SECONDS,
    Fraction,
    Line,
    Natural,
    Ordinal,
    Seconds,
    Time,
)
from mixup_core.store.manifests import STUDY_NAME

BUSY = 3
"""Exit code of a command whose study another driver trains, or took over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """The driver of a study, as recorded in the store: the process that trains or trained it."""

    # Frozen: these fields are the keys of a stored record. The last driver of an earlier version
    # would be unknown; tests/contracts/test_homes.py fails.
    token: Ordinal
    """Number of the lease: 1 for the first driver of the study, larger for each later driver."""
    host: Line
    boot_id: Line | None
    """Linux boot id of the host, which changes at every boot; None if the system has none."""
    pid: Natural
    started_at_ms: Time
    """Unix time in ms at which the driver acquired the lease."""
    command: Line

    @classmethod
    def here(cls, token: int, command: str) -> Self:
        return cls(
            token=token,
            host=socket.gethostname(),
            boot_id=_boot_id(),
            pid=os.getpid(),
            started_at_ms=_now_ms(),
            command=command,
        )

    def __str__(self) -> str:
        since = spell_time(self.started_at_ms)
        return f"pid {self.pid} on {self.host} since {since} (token {self.token})"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningRun:
    """A run in training, and the epoch that it has reached."""

    arm: Line
    seed: Natural
    epoch: Natural
    """Epoch in training, counted from 0."""
    within: Fraction = 0.0
    """Finished fraction of the epoch, in [0, 1]; stays 0 if epochs are short."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heartbeat:
    """A progress report of a driver: the runs in training and the time at which it was written."""

    token: Natural
    """Number of the driver's lease."""
    running: tuple[RunningRun, ...]
    updated_at_ms: Time
    """Unix time of the report, in ms."""
    seconds_left: Seconds | None = None
    """Estimated seconds to the end of the launch; None before the first estimate."""

    @classmethod
    def now(
        cls, token: int, running: Sequence[RunningRun], seconds_left: float | None = None
    ) -> Self:
        return cls(
            token=token,
            running=tuple(running),
            updated_at_ms=_now_ms(),
            seconds_left=None if seconds_left is None else min(seconds_left, MOST_SECONDS),
        )

    def spell_death(self) -> str:
        first = ", ".join(
            f"{run.arm} seed {run.seed} (epoch {run.epoch})" for run in self.running[:3]
        )
        more = f" and {len(self.running) - 3} more" if len(self.running) > 3 else ""
        return (
            f"the last launch did not end by itself: its process died after "
            f"{spell_time(self.updated_at_ms)}, while it trained {first}{more}; it was killed, "
            "often for lack of memory, or the machine stopped; `mixsweep plan` shows the memory "
            "that a run needs; the same command continues the study"
        )


class StudyBusyError(Exception):
    """The study cannot be launched, because another driver trains it."""

    holder: Holder | None
    """The other driver; None if its record is not written yet."""

    def __init__(self, study: str, holder: Holder | None) -> None:
        driver = holder or "another process"
        advice = f"wait until it ends, or run `mixsweep stop {study}`"
        super().__init__(f"study {study!r} is already run by {driver}; {advice}")
        self._study, self.holder = study, holder

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._study, self.holder)


class StudyLostError(Exception):
    """This driver has lost its lease, so another driver may train the study, or does."""


def checked(study: str) -> str:
    """Return the name of a study, which becomes part of a path; raise `ValueError` if it cannot."""
    if not re.fullmatch(STUDY_NAME, study):
        raise ValueError(f"study must match {STUDY_NAME}, got ({study=}).")
    return study


def _boot_id() -> str | None:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
