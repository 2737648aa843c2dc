"""Free memory: the bytes of memory that new processes on this machine can use."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from sweeps.machine.processor import control_groups, text_of

_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""Files of a control group with its memory limit and its used memory, and the name that the
reclaimable memory has in `memory.stat`; by version of the control groups (1 or 2)."""
_THRESHOLD = "RAY_memory_usage_threshold"
_USUAL_THRESHOLD = 0.95
"""Ray's default for `RAY_memory_usage_threshold`: if a larger fraction of the memory is used, Ray
kills runs."""


def free_bytes() -> int:
    """Return the memory, in bytes, that this process and its children can still use.

    This is the smallest of the free memory of the machine and of each control group (Linux's limits
    for containers and jobs). The last part of the memory (5 % by default) does not count as free,
    because Ray kills runs that use it.
    """
    pairs = [memory_of_machine(), *_groups()]
    try:
        threshold = float(os.environ.get(_THRESHOLD, _USUAL_THRESHOLD))
    except ValueError:
        threshold = _USUAL_THRESHOLD
    return max(0, min(int(limit * threshold) - used for limit, used in pairs))


def held_bytes(pid: int) -> int:
    """Return the most memory that a process has held since its start, in bytes; 0 if unknown."""
    lines = text_of(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)


def memory_of_machine() -> tuple[int, int]:
    """Return the memory of the machine and the part in use, in bytes; does not need `/proc`."""
    try:
        found = psutil.virtual_memory()
    except OSError:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_AVPHYS_PAGES")
        return total * page, (total - free) * page
    return found.total, found.total - found.available


def _groups() -> Iterator[tuple[int, int]]:
    """Yield limit and used memory, in bytes, of each control group with a limit, innermost first.

    Reclaimable memory does not count as used.
    """
    for version, places in control_groups("memory"):
        limit, current, inactive = _FILES[version]
        for place in places:
            allowed, used = text_of(place / limit).strip(), text_of(place / current).strip()
            if allowed.isdecimal() and used.isdecimal():
                lines = text_of(place / "memory.stat").splitlines()
                kept = dict(line.split() for line in lines if line)
                yield int(allowed), int(used) - int(kept.get(inactive, 0))
