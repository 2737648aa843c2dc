"""Free memory: the bytes that new processes on this machine can use."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files with the limit, the use and the reclaimable part of it, for control groups version 2 and 1.
"""
_THRESHOLD = "RAY_memory_usage_threshold"
_USUAL_THRESHOLD = 0.95
"""Used fraction of the memory above which Ray kills runs, by default."""


def free_bytes() -> int:
    """Return the bytes that are free on this machine and in each control group of this process.

    Memory that Ray keeps free by killing runs counts as used.
    """
    machine = psutil.virtual_memory()
    pairs = [(machine.total, machine.total - machine.available), *_groups()]
    try:
        threshold = float(os.environ.get(_THRESHOLD, _USUAL_THRESHOLD))
    except ValueError:
        threshold = _USUAL_THRESHOLD
    return max(0, min(int(limit * threshold) - used for limit, used in pairs))


def held_bytes(pid: int) -> int:
    """Return the peak memory of a process in bytes; 0 if Linux does not report it."""
    lines = _text(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)


def _groups() -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group that has a limit, the outermost last."""
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
