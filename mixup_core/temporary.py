"""Temporary folders of one process, and output files, which are written in one and then moved.

If the process is killed, a later process removes its folder.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from mixup_core.store.errors import naming
from mixup_core.store.local_files import sync

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
    """Remove a temporary folder whose lock this process holds; the lock file goes last."""
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


class OutputError(Exception):
    """Error: a file to write would replace a file that is not ours. The message names it."""


def require_free(path: Path) -> bool:
    """Require that a path is a regular file or does not exist; return True if it exists."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is no regular file and is not replaced; give another name")
    return True


@contextmanager
def output_file(
    path: Path, kind: str, is_own: Callable[[Path], bool], *, makes_folder: bool = False
) -> Iterator[Path]:
    """Yield a path to write a file to; it is synced and then moved to its place.

    If the code inside raises an error, the place is as it was.
    """
    if require_free(path) and not is_own(path):
        raise OutputError(f"{path}: is not {kind} and is not replaced; give another name")
    if makes_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    if not path.parent.is_dir():
        raise OutputError(f"{path}: the folder {path.parent} does not exist")
    with temporary_folder(path.parent, f".{path.name}.") as folder:
        unfinished = folder / path.name
        with naming(path):
            yield unfinished
        sync(unfinished)
        require_free(path)
        unfinished.replace(path)
    sync(path.parent)


def require_places(folder: Path, names: Iterable[str], *, is_own: bool) -> None:
    """Require that files can be written to a folder without replacing what is not ours."""
    for name in names:
        for parent in (folder / above for above in Path(name).parents):
            is_link = parent.is_symlink() and parent != folder  # which the user has named
            if is_link or (os.path.lexists(parent) and not parent.is_dir()):
                raise OutputError(f"{parent}: is not a folder")
        path = folder / name
        if require_free(path) and not is_own:
            raise OutputError(
                f"{path}: was not written by this command and is not replaced; name another folder"
            )
