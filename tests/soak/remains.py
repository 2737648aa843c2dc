"""Remains: processes and folders that launches have left behind."""

import os
import time
from pathlib import Path

import psutil

GONE_AFTER = 10.0
"""Seconds after the end of a launch within which everything must be gone."""
_OF_LAUNCHES = ("/ray/", "ray::", "sweeps.cli")
"""Parts of command lines that identify processes of launches."""
_FOLDERS = ("ray", "mixsweep-")


def remains() -> set[str]:
    """Return all processes and folders of launches in this namespace, also of living ones."""
    folders = Path(os.environ["TMPDIR"]).iterdir()
    return {
        *(path.name for path in folders if path.name.startswith(_FOLDERS)),
        *filter(None, map(_name_of_launched, psutil.process_iter())),
    }


def remains_after(before: set[str]) -> set[str]:
    """Return what a finished launch has left, or as soon as nothing is left.

    Args:
        before: Processes and folders before the launch.
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
