"""Errors of the store and of the operating system about files, with a path and with advice."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StoreError(Exception):
    """Error: a store operation failed. The message names the file or address and the reason."""


class StoreFullError(StoreError):
    """Error: the disk or the quota is full. Everything stored before is intact."""


class UnreadableError(StoreError):
    """Error: a path exists, but is not a readable regular file. The message says what it is."""


FREE_SPACE = "stored results are kept; `mixsweep store prune STUDY` shows what can be freed"
_FULL = {errno.ENOSPC, errno.EDQUOT}
_ADVICE = {
    FREE_SPACE: _FULL,
    "files of this size are not allowed there (see `ulimit -f`); use another folder": {errno.EFBIG},
    "give this user permission, or use another folder (--home, --store or --out)": {
        errno.EACCES, errno.EPERM, errno.EROFS,
    },
    "the disk or its server failed: check it, then run the same command again": {
        errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.ENOTCONN, errno.ETIMEDOUT,
    },
    "this file system lacks an operation; use a folder on another one (--home, --store or --out)": {
        errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EMLINK,
    },
    "raise the limit on open files (`ulimit -n`)": {errno.EMFILE, errno.ENFILE},
}  # fmt: skip
"""Advice for errors of the system, and the numbers of these errors."""


def is_full(error: OSError) -> bool:
    """Return True if a disk or a quota is full."""
    return error.errno in _FULL


def advice(error: OSError) -> str | None:
    """Return advice for an error of the system; None if it depends on the file."""
    return next((text for text, numbers in _ADVICE.items() if error.errno in numbers), None)


def spell_file_error(error: OSError) -> str:
    """Return the message of an error of the system: its path, the reason, and what to do."""
    reason = "disk full" if is_full(error) else error.strerror or str(error)
    place = f"{error.filename}: " if error.filename else ""
    told = advice(error)
    return f"{place}{reason}; {told}" if told else f"{place}{reason}"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add a path to an error of the system that has none: calls on open files raise such errors."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and not error.filename:
            error.filename = str(path)
        raise
