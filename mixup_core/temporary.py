"""Temporary: private folders for what a process leaves on local disk, gone with it or soon after.

    mixsweep-<pid>-<4 hex>~/        0700; nobody else sees what is in it, whatever its mode
        lock                        held with `flock` by the process, however it dies

The kernel says who is alive: a pid may belong to another process by now, or to another container.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

PREFIX = "mixsweep-"
"""Of the names of folders in places that other programs use too."""
_LOCK = "lock"
_OWN = re.compile(r"\d+-[0-9a-f]{4}~")
"""What follows the prefix. Without its last sign it might be a date that somebody gave a folder."""


@contextmanager
def temporary_folder(place: Path, prefix: str = PREFIX) -> Iterator[Path]:
    """Make a folder for this process alone; `lock` in it is taken.

    What killed processes of this user left under the same prefix is removed, both now and at the
    end: their last children may be writing still.

    Args:
        place: Where it is made.
        prefix: Of its name.

    Raises:
        OSError: If no folder can be made.
    """
    collect(place, prefix)
    folder, lock = _locked_folder(place, prefix)
    try:
        yield folder
    finally:
        with suppress(OSError):
            _clear(folder)
        os.close(lock)
        collect(place, prefix)


def collect(place: Path, prefix: str = PREFIX) -> None:
    """Remove the folders of processes that are dead; those of the living, and others', stay."""
    for folder in place.glob(f"{escape(prefix)}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            if not (folder / _LOCK).is_file():
                _remove_unlocked(folder, prefix)
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(folder)
            finally:
                os.close(lock)


def is_left(folder: Path) -> bool:
    """Return whether nobody has the lock of such a folder, which may be gone: its process is dead.

    Raises:
        OSError: If the folder, or its lock, is closed to this user.
    """
    try:
        lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _remove_unlocked(folder: Path, prefix: str) -> None:
    """Remove a folder that was never locked, or that was written into when its lock was gone.

    A living process locks its folder before anything else is in it.
    """
    is_written = _OWN.fullmatch(folder.name.removeprefix(prefix)) and any(folder.iterdir())
    if is_written and not (folder / _LOCK).exists():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.rmdir()


def _locked_folder(place: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = place / f"{prefix}{os.getpid()}-{secrets.token_hex(2)}~"
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
