"""Where the scratch of a driver is: its path leaves room for Ray's sockets."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mixup_core.temporary import PREFIX, temporary_folder

_SOCKET_PATH = 107
"""Bytes of the path of a socket, at most (unix(7), without the closing zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len(f"/{PREFIX}4194304-0000~")


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for this driver alone; give its child `ray` to Ray, which opens it to all.

    Raises:
        OSError: If no folder can be made.
    """
    with temporary_folder(_place()) as folder:
        yield folder


def _place() -> Path:
    """Return the folder for temporary files, unless its path is too long for sockets below it."""
    own = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(own)) + _OWN + _RAY <= _SOCKET_PATH
    return own if has_room else Path("/tmp")  # noqa: S108
