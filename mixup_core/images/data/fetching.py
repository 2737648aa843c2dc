"""Fetching: where datasets are on disk, and their verified download. Imports no torch."""

import fcntl
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from zlib import error as DeflateError  # noqa: N812  the class has a lower-case name

from mixup_core.addresses import local_path
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.digests import KnownDigests, file_digest
from mixup_core.images.data.facts import Bundle, DataError, SplitName
from mixup_core.images.data.folders import Layout, folder_digest
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.data.sets.corrupted import CORRUPTED, CorruptedSet
from mixup_core.problem import DataSet
from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import open_lock

_SOURCE_FAILURES = (
    DataError,
    OSError,  # includes URLError, BadGzipFile and timeouts of sockets
    EOFError,
    DeflateError,
    HTTPException,
    tarfile.TarError,
    subprocess.TimeoutExpired,
)


def files_of(name: str) -> Mapping[SplitName, Mapping[str, str]]:
    """Return the files of a dataset by split: path below the root, with `algorithm:digest`."""
    if (of := _archives().get(name)) is not None:
        return {"test": dict.fromkeys(of.files(), "")}
    return DATASETS[name].files if name in DATASETS else {}


def _archives() -> dict[str, CorruptedSet]:
    """Return the archives of corrupted test images, by the names that the user types."""
    return {f"{name}-c": of for name, of in CORRUPTED.items()}


def _bundle_of(name: str) -> Bundle | None:
    return DATASETS[name].bundle if name in DATASETS else None


def data_root() -> Path:
    """Return the folder of datasets as an absolute path; it need not exist.

    It is `$MIXSWEEP_DATA` if set, else `mixsweep/datasets` under `$XDG_CACHE_HOME` or `~/.cache`.
    """
    if own := os.environ.get("MIXSWEEP_DATA"):
        return local_path(own).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).absolute() / "mixsweep" / "datasets"


def statuses(root: Path) -> tuple[DataSet, ...]:
    """Return location, size and presence on this machine of each dataset; no file is opened."""
    return tuple(
        DataSet(
            name=name,
            is_present=is_present(name, root),
            place=_place(name, root),
            num_bytes=DATASETS[name].info.num_bytes if name in DATASETS else None,
        )
        for name in (*DATASETS, *_archives())
    )


def is_present(name: str, root: Path) -> bool:
    """Return whether all files of a dataset exist and none is empty; contents are not read."""
    if (bundle := _bundle_of(name)) is not None:
        return bundle.file() is not None
    paths = [root / file for split in files_of(name).values() for file in split]
    return all(path.is_file() and path.stat().st_size > 0 for path in paths)


def verify(name: str, root: Path, split: SplitName) -> None:
    """Check the files of one split of a downloaded dataset; the other split is not opened."""
    again = f"`mixsweep data fetch {name}` replaces it"
    for file, published in files_of(name)[split].items():
        path = root / file
        if not path.exists():
            raise DataError(
                f"{path}: not found; get it with `mixsweep data fetch {name}`, "
                "or set MIXSWEEP_DATA to the folder that contains the datasets."
            )
        if path.is_file() and path.stat().st_size == 0:
            raise DataError(f"{path}: has 0 bytes; {again}.")
        algorithm, _, expected = published.partition(":")
        if algorithm and (found := file_digest(path, algorithm)) != expected:
            raise DataError(
                f"{path}: {algorithm} differs: expected {expected}, got {found}; {again}."
            )


def checksums(data: DataConfig, root: Path | None = None) -> dict[str, str]:
    """Return the sha256 of each file that a run loads, for provenance."""
    root = data_root() if root is None else root
    if data.name == "image-folder":
        folder, _ = data.photos
        return {f"{folder.resolve().name}/": folder_digest(folder, root, Layout.of(data))}
    origin = DATASETS.origins.get(data.name)
    own = {} if origin is None else {origin.plugin: origin.digest}
    if (bundle := _bundle_of(data.name)) is not None:
        bundled = _bundled(data.name, bundle)
        return own | {bundled.name: file_digest(bundled)}
    splits = files_of(data.name)
    if not splits:
        return own
    corrupted = CORRUPTED[data.name].files() if data.name in CORRUPTED else ()
    wanted = {*data.corruptions, "labels"} if data.test and data.corruptions else set()
    places = {
        file: (root / file).absolute() for file in (*splits["train"], *splits["test"], *corrupted)
    }
    known = KnownDigests(root / "digests" / f"{data.name}.json")
    loaded = {*splits["train"], *(splits["test"] if data.test else ())}
    loaded |= {file for file in corrupted if Path(file).stem in wanted}
    found = {file: known.of(place) for file, place in places.items() if file in loaded}
    known.keep(places.values())
    return own | found


def fetch(name: str, root: Path) -> str:
    """Download a dataset into `root` if it is not complete there; return where it came from."""
    if (bundle := _bundle_of(name)) is not None:
        _bundled(name, bundle)
        return bundle.package
    names = (*DATASETS, *_archives())
    if name not in names:
        raise DataError(
            f"{name}: not a dataset that can be fetched; choose one of {', '.join(names)}."
        )
    if not files_of(name):
        return _place(name, root)
    try:
        with locked(name, root):
            return _fetch_alone(name, root)
    except OSError as error:
        raise DataError(
            f"{root}: {error.strerror or error}; {name} cannot be stored in this folder."
        ) from error


@contextmanager
def locked(name: str, root: Path) -> Iterator[None]:
    """Context manager: lock a dataset for download or decoding; create the root if it is missing.

    Raises:
        OSError: If the root cannot be written, its file system has no locks, or the lock's name is
            taken by something that is not a file.
    """
    root.mkdir(parents=True, exist_ok=True)
    place = root / f".{name}.lock"
    try:
        lock = open_lock(place)
    except UnreadableError as error:
        raise OSError(f"{place} {error}; a lock file contains no data: remove it") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _bundled(name: str, bundle: Bundle) -> Path:
    """Return the file of a package that contains a dataset."""
    if (file := bundle.file()) is None:
        raise DataError(
            f"{name}: the package {bundle.package}, which contains its images, is missing; install "
            f"it with `pip install {bundle.package}`."
        )
    return file


def _fetch_alone(name: str, root: Path) -> str:
    with suppress(DataError):
        _verify_all(name, root)
        return f"already in {_folder(name, root)}"
    staging = root / f".{name}.partial"
    sources, by_hand = (_archives().get(name) or DATASETS[name]).sources(root)
    failures = []
    for source, obtain in sources.items():
        # Files that a killed process left in this folder were never verified.
        _clear(staging)
        staging.mkdir()
        try:
            obtain(staging)
            _verify_all(name, staging)
        except _SOURCE_FAILURES as error:
            failures.append(f"  {source}: {error}")
        else:
            _folder(name, root).mkdir(parents=True, exist_ok=True)
            for file in {file for split in files_of(name).values() for file in split}:
                (staging / file).replace(root / file)
            return source
        finally:
            _clear(staging)
    failed = f"{name}: the download failed from every source."
    raise DataError("\n".join([failed, *failures, f"By hand: {by_hand}"]))


def _verify_all(name: str, root: Path) -> None:
    for split in files_of(name):
        verify(name, root, split)


def _clear(staging: Path) -> None:
    """Delete a path of any kind: a folder, a file or a link; nothing if it does not exist."""
    if staging.is_dir() and not staging.is_symlink():
        shutil.rmtree(staging, ignore_errors=True)
    else:
        staging.unlink(missing_ok=True)


def _place(name: str, root: Path) -> str:
    """Return the location of a dataset: a package, a folder, or the plugin that defines it."""
    if (bundle := _bundle_of(name)) is not None:
        return bundle.package
    if files_of(name):
        return str(_folder(name, root))
    origin = DATASETS.origins.get(name)
    return "computed" if origin is None else f"made by {origin.plugin}"


def _folder(name: str, root: Path) -> Path:
    files = next(iter(files_of(name).values()))
    return (root / next(iter(files))).parent
