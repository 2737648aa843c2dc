"""Remains: processes and folders that launches have left behind."""

import os
from pathlib import Path

import psutil

from tests.faults.launches import lasting

_OF_LAUNCHES = ("/ray/", "ray::", "-m mixsweep")
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
    return lasting(lambda: remains() - before)


def _name_of_launched(process: psutil.Process) -> str | None:
    try:
        line = " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return None
    is_launched = any(part in line for part in _OF_LAUNCHES)
    return f"{process.pid} {process.name()}" if is_launched else None
