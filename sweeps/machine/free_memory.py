"""Free memory: the bytes that processes started here may still take."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Limit, use and the part of it that can be had back, of control groups of version 2 and 1."""
_THRESHOLD = "RAY_memory_usage_threshold"
_USUAL_THRESHOLD = 0.95
"""Part of the memory above which Ray kills runs."""


def free_bytes() -> int:
    """Return the bytes that are free on this machine and in each control group above this process.

    The part that Ray keeps free, by killing runs, counts as taken.
    """
    machine = psutil.virtual_memory()
    pairs = [(machine.total, machine.total - machine.available), *_groups()]
    try:
        threshold = float(os.environ.get(_THRESHOLD, _USUAL_THRESHOLD))
    except ValueError:
        threshold = _USUAL_THRESHOLD
    return max(0, min(int(limit * threshold) - used for limit, used in pairs))


def held_bytes(pid: int) -> int:
    """Return the most bytes that a process has held; 0 where Linux does not tell it."""
    lines = _text(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)


def _groups() -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group that has a limit, outermost last."""
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in {"", "memory"}:
            continue
        version = 1 if controllers else 0
        top = _CONTROL_GROUPS / "memory" if version else _CONTROL_GROUPS
        limit, current, inactive = _FILES[version]
        group = top / path.lstrip("/")
        for place in (group, *group.parents):
            allowed, used = _text(place / limit).strip(), _text(place / current).strip()
            if allowed.isdecimal() and used.isdecimal():
                kept = dict(
                    line.split() for line in _text(place / "memory.stat").splitlines() if line
                )
                yield int(allowed), int(used) - int(kept.get(inactive, 0))
            if place == top:
                break


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
