"""The files of a store on a local disk."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import (
    is_locked,
    make_private_folder,
    read_regular,
    write_durably,
)


class Folder:
    """Files on a local disk, by their path below its root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of all files below a folder; none if it is not there.

        A folder with a suffix is no folder of the store: it has the name of a file, and is yielded
        as one: who reads it finds out.

        Raises:
            OSError: If a folder cannot be listed, or something else has its name.
        """
        for parent, folders, files in os.walk(self.root / folder, onerror=_unlisted):
            below = os.path.relpath(parent, self.root)
            prefix = "" if below == os.curdir else f"{below}/"
            yield from (f"{prefix}{file}" for file in files)
            yield from (f"{prefix}{other}" for other in folders if "." in other)
            folders[:] = [other for other in folders if "." not in other]

    def read(self, name: str) -> bytes:
        """Return a file's content (see `read_regular`)."""
        return read_regular(self.root / name)

    def read_present(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        """Yield name and content of those of some files that are there, or why it has none."""
        for name in names:
            try:
                yield name, self.read(name)
            except FileNotFoundError:
                continue
            except UnreadableError as error:
                yield name, error

    def has(self, name: str) -> bool:
        """Return whether a file, or a link to one, is there."""
        return (self.root / name).is_file()

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None if it is not there."""
        path = self.root / name
        return path.stat().st_size if path.is_file() else None

    def write(self, name: str, data: bytes) -> None:
        """Write a file in place of what is there; a folder is an `IsADirectoryError`."""
        write_durably(self.root / name, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file where none is; return False where one is."""
        return write_durably(self.root / name, data, overwrite=False)

    def move(self, name: str, new_name: str) -> None:
        """Rename a file or what has its name: a link itself, not what it leads to.

        A file takes the place of one; where a folder is in the way, the new name gets a number.
        """
        source, target = self.root / name, self.root / new_name
        make_private_folder(target.parent)
        is_folder = source.is_dir() and not source.is_symlink()
        number = 0
        while target.is_dir() or (is_folder and os.path.lexists(target)):
            number += 1
            target = self.root / f"{new_name}.{number}"
        source.replace(target)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there; a folder is an `IsADirectoryError`."""
        (self.root / name).unlink(missing_ok=True)

    def is_being_written(self, name: str) -> bool:
        """Return whether the writer of a `.tmp` file lives: it has the file locked."""
        return is_locked(self.root / name)

    def age(self, name: str) -> float:
        """Return the seconds since a file was written, or a link made."""
        try:
            return time.time() - (self.root / name).lstat().st_mtime
        except FileNotFoundError:
            return 0.0


def _unlisted(error: OSError) -> None:
    """Let a folder that is not there be empty; nothing else that cannot be listed is."""
    if not isinstance(error, FileNotFoundError) or Path(error.filename).is_symlink():
        raise error
