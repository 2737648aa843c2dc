"""Free memory: the bytes that new processes on this machine can use."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from sweeps.machine.control_groups import control_groups, text_of

_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""Version of the control groups to the files with limit and use, and the reclaimable part of it."""
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
    lines = text_of(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)


def _groups() -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group that has a limit, the outermost last."""
    for version, places in control_groups("memory"):
        limit, current, inactive = _FILES[version]
        for place in places:
            allowed, used = text_of(place / limit).strip(), text_of(place / current).strip()
            if allowed.isdecimal() and used.isdecimal():
                lines = text_of(place / "memory.stat").splitlines()
                kept = dict(line.split() for line in lines if line)
                yield int(allowed), int(used) - int(kept.get(inactive, 0))
