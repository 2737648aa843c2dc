"""Scratch: a private folder for what a driver leaves on local disk, gone with it or soon after.

    mixsweep-<pid>-<4 hex>/         0700; nobody else sees what is in it, whatever its mode
        lock                        held with `flock` by the driver, however it dies

The kernel says who is alive: a pid may belong to another process by now, or to another container.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "mixsweep-"
_LOCK = "lock"
_SOCKET_PATH = 107
"""Bytes of the path of a socket, at most (unix(7), without the closing zero)."""
_RAY = len("/ray/session_2026-11-21_22-01-02_123456_4194304/sockets/plasma_store")
_OWN = len("/mixsweep-4194304-0000")


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for this process alone; give its child `ray` to Ray, which opens it to all.

    Its path leaves room for Ray's sockets. What killed drivers of this user left is removed, both
    now and at the end: their last processes may be writing still.

    Raises:
        OSError: If no folder can be made.
    """
    place = _place()
    collect(place)
    folder, lock = _locked_folder(place)
    try:
        yield folder
    finally:
        with suppress(OSError):
            _clear(folder)
        os.close(lock)
        collect(place)


def collect(place: Path) -> None:
    """Remove the folders of drivers that are dead; those of the living, and others', stay."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            if not (folder / _LOCK).is_file():
                folder.rmdir()  # begun and never locked; one with anything in it is not ours
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(folder)
            finally:
                os.close(lock)


def _place() -> Path:
    """Return the folder for temporary files, unless its path is too long for sockets below it."""
    own = Path(tempfile.gettempdir()).absolute()
    has_room = len(os.fsencode(own)) + _OWN + _RAY <= _SOCKET_PATH
    return own if has_room else Path("/tmp")  # noqa: S108


def _locked_folder(place: Path) -> tuple[Path, int]:
    while True:
        folder = place / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(2)}"
        with suppress(FileExistsError, FileNotFoundError):
            folder.mkdir(mode=0o700)
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            # Who collects may have come between: the folder is gone then, or locked by them.
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if (folder / _LOCK).exists():
                    return folder, lock
            os.close(lock)


def _clear(folder: Path) -> None:
    """Remove a folder; its lock last, so that what could not be removed is found again."""
    for entry in folder.iterdir():
        if entry.name != _LOCK:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
    if [entry.name for entry in folder.iterdir()] == [_LOCK]:
        (folder / _LOCK).unlink()
        with suppress(OSError):
            folder.rmdir()
