"""Where the scratch of a driver is, whose path leaves room for Ray's sockets, and who uses it."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from mixup_core.temporary import PREFIX, collect, is_left, temporary_folder
from sweeps.machine.processes import wait_for_end

MARK = "MIXSWEEP_SCRATCH"
"""Variable of the environment of all that is started for a launch: its folder."""

_SOCKET_PATH = 107
"""Bytes of the path of a socket, at most (unix(7), without the closing zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len(f"/{PREFIX}4194304-0000~")
_OF_RAY = re.compile(rf"(/.*/{PREFIX}\d+-[0-9a-f]{{4}}~)/ray/")
"""Begins the path of a file that Ray has in the folder of a launch."""
_PASSES = 3
"""A process may begin another while the first pass is under way."""
_PATIENCE = 1.0
"""Seconds for what was killed to be gone."""


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for this driver alone; give its child `ray` to Ray, which opens it to all.

    Processes of launches that were killed are killed too, before their folders are removed: they
    write into them.

    Raises:
        OSError: If no folder can be made.
    """
    end_orphans()
    with temporary_folder(_place()) as folder:
        try:
            yield folder
        finally:
            end_orphans(folder)


def clear_scratch() -> None:
    """End what launches that were killed have left running, and remove their folders."""
    end_orphans()
    collect(_place())


def end_orphans(folder: Path | None = None) -> None:
    """Kill what was started for launches that are dead: nobody else ends it.

    Ray's agents outlive a raylet that was killed, by a minute where the GCS is dead too.

    Args:
        folder: Of a launch that ends now, whose processes are killed too.
    """
    for _ in range(_PASSES):
        killed = list(_kill_orphans(folder))
        if not killed:
            return
        wait_for_end(killed, _PATIENCE)


def _kill_orphans(folder: Path | None) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            marked = _folder_of(process)
            if marked is None or process.pid == os.getpid():
                continue
            root = Path(f"/proc/{process.pid}/root")  # in another container are other folders
            seen = Path(f"{root}{marked}") if root.exists() else Path(marked)
            if marked == str(folder) or is_left(seen):
                process.kill()
                yield process


def _folder_of(process: psutil.Process) -> str | None:
    """Return the folder of the launch that a process was started for; None if for none.

    Ray's agents write their title over their environment; their logs stay open.
    """
    marked = process.environ().get(MARK)
    if marked or not process.name().startswith("ray::"):
        return marked or None
    links = (file.readlink() for file in Path(f"/proc/{process.pid}/fd").iterdir())
    found = (_OF_RAY.match(str(link)) for link in links)
    return next((match[1] for match in found if match), None)


def _place() -> Path:
    """Return the folder for temporary files, unless its path is too long for sockets below it."""
    own = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(own)) + _OWN + _RAY <= _SOCKET_PATH
    return own if has_room else Path("/tmp")  # noqa: S108
