"""Temporary folders of one process. If the process is killed, a later process removes them.

    mixsweep-<pid>-<4 hex>~/        0700
        lock                        0600; locked with `flock` by the process; names this folder

A folder's name does not prove who made it: other programs may use the same name. Another process
therefore removes a folder only if the `lock` in it names this very folder, and only while it holds
that lock itself. The kernel releases the lock when the owner ends. A folder without such a lock
file is never touched.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from mixup_core.file_errors import naming

PREFIX = "mixsweep-"
"""Default prefix of the names of temporary folders. It marks them as folders of this program in
places that other programs use too, such as `/tmp`.
"""
_LOCK = "lock"
_OWN = re.compile(r"\d+-[0-9a-f]{4}~")
"""Matches the part of a folder name after the prefix."""
_LARGEST = 4096
"""Maximum number of bytes read from a lock file."""


@contextmanager
def temporary_folder(place: Path, prefix: str = PREFIX) -> Iterator[Path]:
    """Context manager: make a private, locked folder and yield its path; remove it at exit.

    At entry, it also removes folders with the same prefix that killed processes of this user left.
    It does so again at exit, because children of a killed process may write for a while longer.
    """
    collect(place, prefix)
    folder, lock = _locked_folder(place, prefix)
    try:
        yield folder
    finally:
        with suppress(OSError):
            clear(folder)
        os.close(lock)
        collect(place, prefix)


def collect(place: Path, prefix: str = PREFIX) -> None:
    """Remove temporary folders whose processes have ended; keep all others."""
    for folder in left_folders(place, prefix):
        with suppress(OSError):
            clear(folder)


def left_folders(place: Path, prefix: str = PREFIX) -> Iterator[Path]:
    """Lock and yield each temporary folder whose process has ended; unlock it afterwards."""
    for folder in place.glob(f"{escape(prefix)}*"):
        if not _OWN.fullmatch(folder.name.removeprefix(prefix)):
            continue
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_of(lock, folder):
                    yield folder
            finally:
                os.close(lock)


def clear(folder: Path) -> None:
    """Remove a temporary folder whose lock this process holds.

    The lock file is removed last, so that a later process can finish an aborted removal.
    """
    for entry in folder.iterdir():
        if entry.name != _LOCK:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
    if [entry.name for entry in folder.iterdir()] == [_LOCK]:
        (folder / _LOCK).unlink()
        try:
            folder.rmdir()
        except OSError:  # child processes still write into the folder: a later process removes it
            os.close(_lock(folder))


def _locked_folder(place: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = place / f"{prefix}{os.getpid()}-{secrets.token_hex(2)}~"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            try:
                return folder, _lock(folder)
            except OSError:  # a full disk
                shutil.rmtree(folder, ignore_errors=True)
                raise


def _lock(folder: Path) -> int:
    """Create and lock the lock file of a folder, then write the record that proves its owner."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # without locks, a folder that a killed process leaves is kept
        fcntl.flock(lock, fcntl.LOCK_EX)
    with naming(folder / _LOCK):
        os.write(lock, json.dumps(_record(folder)).encode())
    return lock


def _record(folder: Path) -> dict[str, str | int]:
    return {"made by": "mixsweep", "folder": folder.name, "inode": folder.lstat().st_ino}


def _is_of(lock: int, folder: Path) -> bool:
    """Return whether an open lock file was written for this folder of this user."""
    there, own = folder.lstat(), os.fstat(lock)
    is_private = stat.S_ISDIR(there.st_mode) and there.st_mode & 0o077 == 0
    is_ours = there.st_uid == own.st_uid == os.geteuid() and stat.S_ISREG(own.st_mode)
    # Another process may have removed the folder since the file was opened.
    if not (is_private and is_ours and os.path.samestat(own, (folder / _LOCK).lstat())):
        return False
    try:
        return bool(json.loads(os.pread(lock, _LARGEST, 0)) == _record(folder))
    except ValueError:
        return False
