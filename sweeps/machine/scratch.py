"""Scratch folder of a driver, with room for Ray's sockets in its path, and what launches left."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from mixup_core.temporary import PREFIX, collect, left_folders, temporary_folder
from sweeps.machine.members import members, recorded_members
from sweeps.machine.processes import wait_for_end

_SOCKET_PATH = 107
"""Bytes of the path of a socket, at most (unix(7), without the closing zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len(f"/{PREFIX}4194304-0000~")
_PASSES = 3
"""A process may begin another while the first pass is under way."""
_PATIENCE = 1.0
"""Seconds for what was killed to be gone."""


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for this driver alone; give its child `ray` to Ray, which opens it to all.

    Processes that killed launches left running are killed before their folders are removed: they
    write into them.

    Raises:
        OSError: If no folder can be made.
    """
    end_orphans()
    with temporary_folder(_place()) as folder:
        try:
            with recorded_members(folder):
                yield folder
        finally:
            end_members(folder)


def clear_scratch() -> None:
    """End what killed launches left running, and remove their folders."""
    end_orphans()
    collect(_place())


def end_orphans() -> None:
    """Kill the recorded processes of launches that died.

    Ray's agents outlive a raylet that was killed, by a minute where the GCS is dead too.
    """
    for folder in left_folders(_place()):
        end_members(folder)


def end_members(folder: Path) -> None:
    """Kill what a launch has started and recorded.

    Args:
        folder: Of a launch that is dead or ends now.
    """
    for _ in range(_PASSES):
        killed = []
        for process in members(folder):
            with suppress(psutil.Error):
                process.kill()
                killed.append(process)
        if not killed:
            return
        wait_for_end(killed, _PATIENCE)


def _place() -> Path:
    """Return the folder for temporary files, unless its path is too long for sockets below it."""
    own = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(own)) + _OWN + _RAY <= _SOCKET_PATH
    return own if has_room else Path("/tmp")  # noqa: S108
