"""Files of a store, on a disk or in a bucket: each appears whole or not at all."""

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path

import fsspec.core
from fsspec.implementations.local import LocalFileSystem

_ATOMIC_CREATE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}
"""Protocols whose fsspec package creates an object by one conditional put."""
_BATCH = 256
"""Objects asked for at once: what is waited for is then the server, not each answer."""
_TRIES = 5
"""Times a file is written again because its new file was cleared away."""
_FULL = {"QuotaExceeded", "InsufficientStorage", "StorageFull", "XMinioStorageFull"}
"""What S3 servers answer when nothing more fits."""


class StoreError(Exception):
    """The store cannot do what was asked."""


class StoreFullError(StoreError):
    """The disk or the quota is full; everything stored before is intact."""


class UnreadableError(StoreError):
    """Something has the name of a file and cannot be read as one; the text says what, no more."""


def open_files(url: str) -> "Folder | Bucket":
    """Return the files below a path or a URL of fsspec; nothing is created or asked.

    Raises:
        StoreError: If nobody knows such a URL, or a package for it is missing.
    """
    try:
        # A cached listing hides what other machines have written since.
        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ValueError, ImportError) as error:
        raise StoreError(f"{url}: {error}") from error
    if isinstance(files, LocalFileSystem):
        return Folder(Path(root))
    return Bucket(files, root, url)


def write_durably(path: Path, data: bytes, *, overwrite: bool = True) -> bool:
    """Write a local file so that it appears whole or not at all, whatever stops the machine.

    A new file in the same folder is synced and then renamed (or linked, where it must not
    overwrite), and the folder is synced. Mode 0600, folders made on the way 0700.

    Args:
        path: The file.
        data: All of its content.
        overwrite: Whether a file that is there is replaced.

    Returns:
        Whether the file was written; False only if it was there and is not to be overwritten.

    Raises:
        StoreFullError: If the disk or the quota is full; the file is as it was, or complete.
        OSError: If the disk fails in another way; the file is as it was, or complete.
    """
    try:
        # Who clears up after a dead writer may take this one for it.
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return _write_once(path, data, overwrite=overwrite)
        return _write_once(path, data, overwrite=overwrite)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StoreFullError(f"disk full: {path} needs {len(data):,} bytes") from error
        raise


def read_regular(path: Path, limit: int = -1) -> bytes:
    """Return the content of a local file; opening a FIFO would wait, so nothing else is read.

    Args:
        path: The file, or a link to one.
        limit: Bytes that are read at most; -1 reads all of it.

    Raises:
        FileNotFoundError: If nothing has that name.
        UnreadableError: If a folder, a FIFO, a device or a link that leads nowhere has it, or a
            file of this user that is closed to its owner.
        OSError: If the disk fails, or the file is closed and somebody else's.
    """
    with open_regular(path) as file:
        return file.read(limit)


def open_regular(path: Path) -> BufferedReader:
    """Return a local file, open to be read (see `read_regular`, whose errors it raises)."""
    return os.fdopen(_opened(path, os.O_RDONLY), "rb")


def open_lock(path: Path) -> int:
    """Return the descriptor of a file that is there to be locked, made for this user if missing.

    Raises:
        UnreadableError: As `read_regular`; a file closed to its owner is opened to them instead.
        StoreFullError: If the disk or the quota is full.
        OSError: If the disk fails, or the file is closed and somebody else's.
    """
    try:
        make_private_folder(path.parent)
        return _opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StoreFullError(f"disk full: {path} cannot be made") from error
        raise
    except UnreadableError:
        if path.is_symlink() or not path.is_file():
            raise
        path.chmod(0o600)
        return _opened(path, os.O_RDWR | os.O_NOFOLLOW)


def make_private_folder(path: Path) -> None:
    """Make a folder and the ones above it that are missing, durably, for this user alone.

    Raises:
        NotADirectoryError: If something else has its name or the name of one above it.
    """
    if path.is_dir():
        return
    make_private_folder(path.parent)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error
    _sync_folder(path.parent)


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
    """Return why what has a name can never be opened as a file; None if it is not there or may."""
    match error.errno:
        case errno.ENOENT | errno.ELOOP if path.is_symlink():
            return "is a link" if path.exists() else "is a link that leads nowhere"
        case errno.EISDIR | errno.ENXIO:
            return "is no file"
        case errno.EACCES if path.stat().st_uid == os.geteuid():
            return "is closed to its owner"
    return None


def _write_once(path: Path, data: bytes, *, overwrite: bool) -> bool:
    make_private_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        _try_lock(descriptor)
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
    _sync_folder(path.parent)
    return True


def _try_lock(descriptor: int) -> bool:
    """Return whether nobody else has a file locked; where there are no locks, nobody has."""
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
        # FAT and some network and user-space file systems have no links.
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        if path.exists():
            return False
        source.replace(path)
    return True


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unlisted(error: OSError) -> None:
    """Let a folder that is not there be empty; nothing else that cannot be listed is."""
    if not isinstance(error, FileNotFoundError) or Path(error.filename).is_symlink():
        raise error


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
            below = parent[len(str(self.root)) + 1 :]
            yield from (f"{below}/{file}" for file in files)
            yield from (f"{below}/{other}" for other in folders if "." in other)
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
        try:
            descriptor = _opened(self.root / name, os.O_RDONLY)
        except (FileNotFoundError, UnreadableError):
            return False
        try:
            return not _try_lock(descriptor)
        finally:
            os.close(descriptor)

    def age(self, name: str) -> float:
        """Return the seconds since a file was written, or a link made."""
        try:
            return time.time() - (self.root / name).lstat().st_mtime
        except FileNotFoundError:
            return 0.0


class Bucket:
    """Objects below a URL, by their name below it; one put is the commit.

    Whatever goes wrong but a missing object is a `StoreError` of one line.
    """

    def __init__(self, files: fsspec.AbstractFileSystem, root: str, url: str) -> None:
        self._files = files
        self._root = root.rstrip("/")
        self._url = url

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of all objects below a folder; none if it is not there.

        Raises:
            StoreError: If the server cannot be reached, or there is no such bucket.
        """
        try:
            with self._told():
                found = self._files.find(self._path(folder))
        except FileNotFoundError as error:
            raise StoreError(f"{self._url}: no such bucket") from error
        for path in found:
            yield path[len(self._root) + 1 :]

    def read(self, name: str) -> bytes:
        """Return an object's content.

        Raises:
            FileNotFoundError: If there is no such object.
        """
        with self._told():
            content: bytes = self._files.cat_file(self._path(name))
        return content

    def read_present(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | UnreadableError]]:
        """Yield name and content of those of some objects that are there, many asked for at once.

        Raises:
            StoreError: If the server cannot be reached.
        """
        waiting = iter(names)
        while batch := {self._path(name): name for name in islice(waiting, _BATCH)}:
            with self._told():
                answers = self._files.cat(list(batch), on_error="return")
            for path, answer in answers.items():
                if isinstance(answer, bytes):
                    yield batch[path], answer
                elif not isinstance(answer, FileNotFoundError):
                    with self._told():
                        raise answer

    def has(self, name: str) -> bool:
        """Return whether an object is there.

        Raises:
            StoreError: If the server cannot be reached.
        """
        with self._told():
            return bool(self._files.exists(self._path(name)))

    def size(self, name: str) -> int | None:
        """Return the bytes of an object; None if it is not there.

        Raises:
            StoreError: If the server cannot be reached.
        """
        try:
            with self._told():
                return int(self._files.size(self._path(name)))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put an object in place of what is there.

        Raises:
            StoreError: If the server cannot be reached or will not take it.
        """
        try:
            with self._told():
                self._files.pipe_file(self._path(name), data)
        except FileNotFoundError as error:
            raise StoreError(f"{self._url}: no such bucket") from error

    @property
    def creates_atomically(self) -> bool:
        """Whether the server itself decides, in one request, who of two creators is first."""
        protocol = self._files.protocol
        return bool(_ATOMIC_CREATE & ({protocol} if isinstance(protocol, str) else set(protocol)))

    def create(self, name: str, data: bytes) -> bool:
        """Put an object where none is; return False where one with other content is.

        Where `creates_atomically` is false, the test and the put are two requests.

        Raises:
            StoreError: If the server cannot be reached or will not take it.
        """
        try:
            with self._told():
                if self.creates_atomically:
                    self._files.pipe_file(self._path(name), data, mode="create")
                elif self._files.exists(self._path(name)):
                    return False
                else:
                    self._files.pipe_file(self._path(name), data)
        except StoreError as error:
            refusal = error
        except OSError:
            refusal = StoreError(f"{self._url}: no such bucket")
        else:
            return True
        # Servers word their refusal differently; and a put that is repeated because its answer was
        # lost is refused, though it was the first. What is there tells.
        try:
            return self.read(name) == data
        except FileNotFoundError:
            raise refusal from refusal.__cause__

    def move(self, name: str, new_name: str) -> None:
        """Copy an object and remove it."""
        with self._told():
            self._files.cp_file(self._path(name), self._path(new_name))
        self.remove(name)

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        try:
            with self._told():
                self._files.rm_file(self._path(name))
        except FileNotFoundError:
            return

    def is_being_written(self, name: str) -> bool:
        """Return False: an object is there once it is whole."""
        del name
        return False

    def age(self, name: str) -> float:
        """Return the seconds since an object was put, by the clocks of server and caller."""
        with self._told():
            return time.time() - float(self._files.modified(self._path(name)).timestamp())

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn the errors of many packages into one of ours, its text one line."""  # noqa: DOC501
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:  # each package of fsspec has exceptions of its own
            text = " ".join(str(error).split()) or type(error).__name__
            response = getattr(error.__cause__ or error, "response", None)
            code = response["Error"].get("Code") if isinstance(response, dict) else None
            if code in _FULL:
                raise StoreFullError(f"{self._url}: full, or over its quota ({code})") from error
            if isinstance(error, PermissionError):
                raise StoreError(
                    f"{self._url}: the server refuses these credentials ({code or text})"
                ) from error
            raise StoreError(f"{self._url}: {text}") from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
