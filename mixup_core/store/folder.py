"""Folder: a store's files on a local disk."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import (
    is_locked,
    make_folder,
    read_regular,
    write_durably,
)


class Folder:
    """Reads and writes files on a local disk, named by their paths relative to a root folder.

    The root is created by the first write. A root that was there is not created again: it was moved
    or deleted, and results would be split over two places.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.is_new = not root.is_dir()
        """True until the root folder was there."""

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of all files below a folder; none if the folder is missing.

        A folder with a dot in its name, such as `x.json`, stands where the store expects a file.
        Its own name is yielded, not those of files in it; reading it raises `UnreadableError`.
        """
        for parent, folders, files in os.walk(self.root / folder, onerror=_unlisted):
            below = os.path.relpath(parent, self.root)
            prefix = "" if below == os.curdir else f"{below}/"
            yield from (f"{prefix}{file}" for file in files)
            yield from (f"{prefix}{other}" for other in folders if "." in other)
            folders[:] = [other for other in folders if "." not in other]

    def read(self, name: str) -> bytes:
        """Return the content of a file as bytes."""
        return read_regular(self.root / name)

    def read_present(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        """Yield (name, content) for each of the given files that exists.

        If a file cannot be read, the `UnreadableError` is yielded instead of the content.
        """
        for name in names:
            try:
                yield name, self.read(name)
            except FileNotFoundError:
                continue
            except UnreadableError as error:
                yield name, error

    def has(self, name: str) -> bool:
        """Return whether a file of this name, or a link to a file, exists."""
        return (self.root / name).is_file()

    def is_taken(self, name: str) -> bool:
        """Return whether anything has this name: a file, a folder, a FIFO or a broken link, say."""
        return os.path.lexists(self.root / name)

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""
        path = self.root / name
        return path.stat().st_size if path.is_file() else None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, replacing one of the same name."""
        self._write(name, data, overwrite=True)

    def create(self, name: str, data: bytes) -> bool:
        """Create a file and return True; return False if a file of this name exists already."""
        return self._write(name, data, overwrite=False)

    def move(self, name: str, new_name: str) -> None:
        """Rename a file or folder. If it is a link, rename the link itself.

        A file replaces a file that has the new name already. If a folder has the new name, or a
        folder is to be renamed and the new name is in use, the new name gets a number: `x.json.1`.
        """
        source, target = self.root / name, self.root / new_name
        make_folder(target.parent, self._top)
        is_folder = source.is_dir() and not source.is_symlink()
        number = 0
        while target.is_dir() or (is_folder and os.path.lexists(target)):
            number += 1
            target = self.root / f"{new_name}.{number}"
        source.replace(target)

    def remove(self, name: str) -> None:
        """Remove a file if it exists; raise IsADirectoryError if a folder has this name."""
        (self.root / name).unlink(missing_ok=True)

    def is_being_written(self, name: str) -> bool:
        """Return True if a `.tmp` file is locked, that is, if the process writing it is alive."""
        return is_locked(self.root / name)

    @property
    def _top(self) -> Path | None:
        self.is_new = self.is_new and not self.root.is_dir()
        return None if self.is_new else self.root

    def _write(self, name: str, data: bytes, *, overwrite: bool) -> bool:
        is_written = write_durably(self.root / name, data, overwrite=overwrite, top=self._top)
        self.is_new = False
        return is_written

    def age(self, name: str) -> float:
        """Return the seconds since a file was written or a link was made; 0 if it is missing."""
        try:
            return time.time() - (self.root / name).lstat().st_mtime
        except FileNotFoundError:
            return 0.0


def _unlisted(error: OSError) -> None:
    """Ignore the error of listing a missing folder; raise every other error."""
    if not isinstance(error, FileNotFoundError) or Path(error.filename).is_symlink():
        raise error
