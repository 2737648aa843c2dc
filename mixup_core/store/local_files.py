"""Local files: written completely or not at all; read only if they are regular files."""

import errno
import fcntl
import os
import stat
import tempfile
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from mixup_core.store.errors import StoreError, StoreFullError, UnreadableError, is_full, naming

_TRIES = 5
"""Number of attempts to write a file if another process removes its temporary file."""


def write_durably(
    path: Path, data: bytes, *, overwrite: bool = True, top: Path | None = None
) -> bool:
    """Write a local file durably: after any crash it is complete, or as it was before.

    A new file in the same folder is synced and then renamed (or linked, if it must not
    overwrite), and the folder is synced. File and folders that are made are private, unless they
    are in a shared folder (`share`).
    """
    try:
        # A process that removes files of dead writers may remove our temporary file.
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return _write_once(path, data, top, overwrite=overwrite)
        return _write_once(path, data, top, overwrite=overwrite)
    except OSError as error:
        if is_full(error):
            raise StoreFullError(f"disk full: {path} needs {len(data):,} bytes") from error
        error.filename = error.filename or str(path)
        raise


def read_regular(path: Path, limit: int = -1) -> bytes:
    """Return the content of a regular local file; a FIFO, which would block, is refused."""
    with open_regular(path) as file, naming(path):
        return file.read(limit)


def open_regular(path: Path) -> BufferedReader:
    """Open a regular local file for reading, as a binary stream."""
    return os.fdopen(_opened(path, os.O_RDONLY), "rb")


def open_lock(path: Path) -> int:
    """Return the file descriptor of a lock file; create a missing file.

    If this user owns the file without permission to read and write it, the permission is added.
    """
    try:
        make_folder(path.parent)
        is_new = not os.path.lexists(path)
        lock = _opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    except OSError as error:
        if is_full(error):
            raise StoreFullError(f"disk full: {path} cannot be created") from error
        raise
    except UnreadableError:
        if path.is_symlink() or not path.is_file():
            raise
        path.chmod(0o600)
        return _opened(path, os.O_RDWR | os.O_NOFOLLOW)
    if is_new:
        share(path)
    return lock


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of a local file; False if it is not a file."""
    try:
        descriptor = _opened(path, os.O_RDONLY)
    except (FileNotFoundError, UnreadableError):
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path, top: Path | None = None) -> None:
    """Make a folder and its missing parents, durably; private, unless the parent is shared."""
    if path.is_dir():
        return
    if path == top:
        raise StoreError(f"{path} was moved or deleted, so nothing is written there any more")
    make_folder(path.parent, top)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error
    share(path)
    sync(path.parent)


def is_shared(folder: Path) -> bool:
    """Return whether a folder has the set-group-ID bit and its group may write to it."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


def share(path: Path) -> None:
    """Give a new file or folder the group permissions of its folder, if that is shared by a group.

    Others may read it if they may read the folder. As in a shared repository of git.
    """
    if is_shared(path.parent):
        folder, own = path.parent.stat().st_mode, path.lstat()
        mask = 0o2075 if stat.S_ISDIR(own.st_mode) else 0o064
        wanted = stat.S_IMODE(own.st_mode) | folder & mask
        if own.st_uid == os.geteuid() and wanted != stat.S_IMODE(own.st_mode):
            path.chmod(wanted)


def share_below(folder: Path) -> None:
    """Share (`share`) a folder and what another library has just written below it."""
    if folder.is_dir() and is_shared(folder.parent):
        for path in (folder, *sorted(folder.rglob("*"))):
            if not path.is_symlink():
                share(path)


def _opened(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if (reason := _unreadable(path, error)) is None:
            raise
        raise UnreadableError(reason) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError("is no file")
    return descriptor


def _unreadable(path: Path, error: OSError) -> str | None:
    """Return the reason why a path is not a readable file; None for every other error."""
    match error.errno:
        case errno.ENOENT | errno.ELOOP if path.is_symlink():
            return "is a link" if path.exists() else "is a link that leads nowhere"
        case errno.EISDIR | errno.ENXIO:
            return "is no file"
        case errno.EACCES if path.stat().st_uid == os.geteuid():
            return "denies access to its owner"
    return None


def _write_once(path: Path, data: bytes, top: Path | None, *, overwrite: bool) -> bool:
    make_folder(path.parent, top)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        _try_lock(descriptor)
        share(Path(temporary))
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
        if overwrite:
            Path(temporary).replace(path)
        elif not _link(Path(temporary), path):
            return False
    finally:
        os.close(descriptor)
        Path(temporary).unlink(missing_ok=True)
    sync(path.parent)
    return True


def _try_lock(descriptor: int) -> bool:
    """Try to lock a file; return False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _link(source: Path, path: Path) -> bool:
    try:
        path.hardlink_to(source)
    except FileExistsError:
        return False
    except OSError as error:
        # FAT and some network and user-space file systems have no hard links.
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        if path.exists():
            return False
        source.replace(path)
    return True


def sync(path: Path) -> None:
    """Write a file or folder through to the disk; some file systems cannot do so for a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP} or not path.is_dir():
            error.filename = str(path)
            raise
    finally:
        os.close(descriptor)
