"""Files of a store, on a disk or in a bucket. Readers see each file complete or not at all."""

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import fsspec
import fsspec.core
from fsspec.implementations.local import LocalFileSystem

from mixup_core.addresses import Address, reason, store_address
from mixup_core.store.errors import StoreError, StoreFullError, UnreadableError
from mixup_core.store.local_files import is_locked, make_folder, read_regular, write_durably


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
        """Yield (name, content or an `UnreadableError`) for each of the files that exists."""
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
        """Rename a file, folder or link (not its target); replace a file of the new name."""
        target = self.root / new_name
        make_folder(target.parent, self._top)
        (self.root / name).replace(target)

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


_ATOMIC_CREATE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}
"""Protocols whose fsspec package can create an object by one conditional put, without a race."""
_BATCH = 256
"""Number of objects requested in parallel, so that one slow answer does not delay the others."""
_NEED_A_BUCKET = {"find", "pipe_file"}
"""Methods of fsspec packages that raise `FileNotFoundError` only if the bucket is missing."""
_FULL = {"QuotaExceeded", "InsufficientStorage", "StorageFull", "XMinioStorageFull"}
"""Error codes with which S3 servers report that they are full."""


class Bucket:
    """Reads and writes objects in cloud storage, named relative to a root URL.

    One request writes a whole object. Reading or renaming a missing object raises
    `FileNotFoundError`; every other failure raises a `StoreError` with a one-line message.
    """

    def __init__(self, files: fsspec.AbstractFileSystem, root: str, url: str) -> None:
        self._files = files
        self._root = root.rstrip("/")
        self._url = url
        self._shown = store_address(url)

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of all objects below a folder; none if there is no such folder."""
        for path in self._call("find", folder):
            yield path[len(self._root) + 1 :]

    def read(self, name: str) -> bytes:
        """Return the content of an object of this bucket as bytes."""
        content: bytes = self._call("cat_file", name)
        return content

    def read_present(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        """Yield (name, content) for each of the given objects that exists in this bucket."""
        waiting = iter(names)
        while batch := list(islice(waiting, _BATCH)):
            # Unlike `cat`, this takes `*` and `[` in a name literally. Without a start, s3fs asks
            # for the size of each object before it reads it.
            answers = self._call("cat_ranges", batch, 0, None, on_error="return")
            for name, answer in zip(batch, answers, strict=True):
                if isinstance(answer, bytes):
                    yield name, answer
                elif getattr(answer, "errno", None) == errno.EINVAL:
                    with suppress(FileNotFoundError):  # an empty object has no byte to start at
                        yield name, self.read(name)
                elif not isinstance(answer, FileNotFoundError):
                    raise self._spelled(answer) from _cause(answer, self._shown)

    def has(self, name: str) -> bool:
        """Return whether this bucket has an object of this name."""
        return self.size(name) is not None

    is_taken = has

    def size(self, name: str) -> int | None:
        """Return the size in bytes of an object of this bucket; None if it does not exist."""
        try:
            found = self._call("info", name)
        except FileNotFoundError:
            return None
        # Otherwise the name is only a prefix of other names.
        return int(found["size"]) if found["type"] == "file" else None

    def write(self, name: str, data: bytes) -> None:
        """Write an object of this bucket, replacing one of the same name."""
        self._call("pipe_file", name, data)

    @property
    def creates_atomically(self) -> bool:
        """True if one request to this bucket can test that an object is missing and create it."""
        protocol = self._files.protocol
        return bool(_ATOMIC_CREATE & ({protocol} if isinstance(protocol, str) else set(protocol)))

    def create(self, name: str, data: bytes) -> bool:
        """Create an object of this bucket and return True; return False if another has its name."""
        try:
            if self.creates_atomically:
                self._call("pipe_file", name, data, mode="create")
            elif self.has(name):
                return False
            else:
                self.write(name, data)
        except StoreError as error:
            refusal = error
        except FileExistsError:
            refusal = StoreError(f"{self._shown}: the object {name} exists but cannot be read")
        else:
            return True
        # Servers word a refusal differently. Also, if the answer to a put is lost, the put is
        # repeated, and the server refuses the second one although the first succeeded. So the
        # stored content decides.
        try:
            return self.read(name) == data
        except FileNotFoundError:
            raise refusal from refusal.__cause__

    def move(self, name: str, new_name: str) -> None:
        """Rename an object (copy it, then remove the original); replace one of the new name."""
        self._call("cp_file", name, self._path(new_name))
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove an object of this bucket if it exists."""
        with suppress(FileNotFoundError):
            self._call("rm_file", name)

    def is_being_written(self, name: str) -> bool:
        """Return False: a bucket shows an object only once it is completely written."""
        del name
        return False

    def age(self, name: str) -> float:
        """Return an object's age in seconds; 0 if it is missing."""
        try:
            return time.time() - float(self._call("modified", name).timestamp())
        except FileNotFoundError:
            return 0.0

    def _call(self, method: str, of: str | list[str], *args: Any, **options: Any) -> Any:
        """Call a method of fsspec on a path or several; its errors become a `StoreError`."""
        paths = self._path(of) if isinstance(of, str) else list(map(self._path, of))
        try:
            return getattr(self._files, method)(paths, *args, **options)
        except FileExistsError:
            raise
        except FileNotFoundError as error:
            if method not in _NEED_A_BUCKET:
                raise
            raise StoreError(f"{self._shown}: no such bucket") from error
        except Exception as error:  # each package of fsspec has exceptions of its own
            raise self._spelled(error) from _cause(error, self._shown)

    def _spelled(self, error: Exception) -> StoreError:
        text = reason(error, self._shown)
        response = getattr(error.__cause__ or error, "response", None)
        code = response["Error"].get("Code") if isinstance(response, dict) else None
        if code in _FULL:
            return StoreFullError(f"{self._shown}: full, or over its quota ({code})")
        if isinstance(error, PermissionError):
            text = f"the server refuses these credentials ({code or text})"
        return StoreError(f"{self._shown}: {text}")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _cause(error: Exception, shown: Address) -> Exception | None:
    return error if shown.is_whole else None  # a traceback would quote the secret


Files = Folder | Bucket


def open_files(url: str) -> Files:
    """Return the files below a path or fsspec URL; nothing is created or requested yet."""
    # fsspec would read `::` in a path as a chain of file systems.
    if (path := url.removeprefix("file://")) != url or "://" not in url:
        try:
            return Folder(Path(path).expanduser().absolute())
        except RuntimeError as error:
            raise StoreError(f"{url}: {error}") from error
    try:
        # A cached listing hides what other machines have written since.
        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except Exception as error:  # each package of fsspec has exceptions of its own
        shown = store_address(url)
        raise StoreError(f"{shown}: {reason(error, shown)}") from _cause(error, shown)
    if isinstance(files, LocalFileSystem):
        return Folder(Path(root))
    return Bucket(files, root, url)
