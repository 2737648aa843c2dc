"""SQLite databases named by URL: where the file is, and how to open it one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mixup_core.store.files import make_private_folder

_SQLITE = "sqlite:///"


def database_file(url: str) -> Path | None:
    """Return the file behind a database URL; None if there is no file."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


@contextmanager
def alone(database: Path | None) -> Iterator[None]:
    """Open a database one process at a time: two on a fresh one break it for good (TRAP 20)."""
    if database is None:
        yield
        return
    make_private_folder(database.parent)
    with database.with_name(f"{database.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not database.exists():
            database.touch(mode=0o600)  # SQLite would let everyone read it
        yield
