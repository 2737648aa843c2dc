"""Remains: processes and folders of launches that are over."""

import os
import time
from pathlib import Path

import psutil

GONE_AFTER = 10.0
"""Seconds after the end of a launch by which nothing of it may be left."""
_OF_LAUNCHES = ("/ray/", "ray::", "sweeps.cli")
"""Parts of command lines by which what a launch started is known."""
_FOLDERS = ("ray", "mixsweep-")


def remains() -> set[str]:
    """Return what there is at this moment of launches in this namespace, the living included."""
    folders = Path(os.environ["TMPDIR"]).iterdir()
    return {
        *(path.name for path in folders if path.name.startswith(_FOLDERS)),
        *filter(None, map(_name_of_launched, psutil.process_iter())),
    }


def remains_after(before: set[str]) -> set[str]:
    """Return what a launch that is over has left, as soon as that is nothing.

    Args:
        before: What there was when it began.
    """
    give_up_at = time.monotonic() + GONE_AFTER
    while (left := remains() - before) and time.monotonic() < give_up_at:
        time.sleep(0.1)
    return left


def _name_of_launched(process: psutil.Process) -> str | None:
    try:
        line = " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return None
    is_launched = any(part in line for part in _OF_LAUNCHES)
    return f"{process.pid} {process.name()}" if is_launched else None
