"""Where the scratch of a driver is, whose path leaves room for Ray's sockets, and who uses it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from mixup_core.temporary import PREFIX, temporary_folder

MARK = "MIXSWEEP_SCRATCH"
"""Variable of the environment of all that is started for a launch: its folder."""

_SOCKET_PATH = 107
"""Bytes of the path of a socket, at most (unix(7), without the closing zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len(f"/{PREFIX}4194304-0000~")


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for this driver alone; give its child `ray` to Ray, which opens it to all.

    Processes of launches that were killed are killed too.

    Raises:
        OSError: If no folder can be made.
    """
    with temporary_folder(_place()) as folder:
        end_orphans()
        try:
            yield folder
        finally:
            end_orphans(folder)


def end_orphans(folder: Path | None = None) -> None:
    """Kill what was started for launches whose folder is gone: nobody else ends it.

    Ray's agents outlive a raylet that was killed, by a minute where the GCS is dead too.

    Args:
        folder: Of a launch that ends now, whose processes are killed too.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            marked = process.environ().get(MARK)
            if not marked or process.pid == os.getpid():
                continue
            root = Path(f"/proc/{process.pid}/root")  # in another container are other folders
            seen = Path(f"{root}{marked}") if root.exists() else Path(marked)
            if marked == str(folder) or not seen.exists():
                process.kill()


def _place() -> Path:
    """Return the folder for temporary files, unless its path is too long for sockets below it."""
    own = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(own)) + _OWN + _RAY <= _SOCKET_PATH
    return own if has_room else Path("/tmp")  # noqa: S108
