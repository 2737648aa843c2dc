"""Digests: checksums of files, and a cache of them. Imports no torch."""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mixup_core.images.data.facts import DataError
from mixup_core.rules import printable
from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.local_files import open_regular, read_regular, write_durably


def file_digest(file: Path, algorithm: str = "sha256") -> str:
    """Return the hexadecimal digest of a file's content, sha256 by default."""
    try:
        with open_regular(file) as stream:
            return hashlib.file_digest(stream, algorithm).hexdigest()
    except (UnreadableError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(printable(f"{file}: {reason}.")) from error


class KnownDigests:
    """Cache of sha256 digests of unchanged files, stored in a file.

    A file is identified by path, size, and the times of its content (mtime) and inode (ctime). A
    file written within two seconds before it was read is not cached, because a later write could
    have the same time. The cache may be deleted at any time; if it cannot be written, nothing is
    cached.
    """

    def __init__(self, kept: Path) -> None:
        """Load the cache."""
        self._kept = kept
        self._known: dict[str, list[Any]] = {}
        self._asked: dict[str, list[Any]] = {}
        with suppress(OSError, UnreadableError, ValueError, RecursionError):
            known = json.loads(read_regular(kept))
            self._known = known if isinstance(known, dict) else {}

    def of(self, entry: os.DirEntry[str] | Path) -> str:
        """Return the sha256 of a file, from the cache if the file is unchanged."""
        path = os.fspath(entry)
        try:
            found = entry.stat()
        except OSError as error:
            raise DataError(printable(f"{path}: {error.strerror}.")) from error
        mark = [found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        known = self._known.get(path)
        if isinstance(known, list) and known[:-1] == mark and isinstance(known[-1], str):
            self._asked[path] = known
            return known[-1]
        digest = file_digest(Path(path))
        if time.time_ns() - max(mark[1:]) > _YOUNG_NS:
            self._asked[path] = [*mark, digest]
        return digest

    def keep(self, others: Iterable[Path] = ()) -> None:
        """Save the cache with the digests requested since it was loaded; drop all others."""
        known = {path: self._known[path] for path in map(str, others) if path in self._known}
        known |= self._asked
        if known == self._known:
            return
        with suppress(OSError, StoreError):
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            for left in self._kept.parent.glob(f"{self._kept.name}.*"):
                left.unlink(missing_ok=True)  # of killed processes; a running one tries again
            write_durably(self._kept, json.dumps(known).encode())


_YOUNG_NS = 2_000_000_000
"""Age, in nanoseconds, from which a file's times are trusted: the coarsest resolution to expect."""
