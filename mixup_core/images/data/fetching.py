"""Where the data sets of the catalogue lie on disk and how they get there, verified. No torch."""

import fcntl
import gzip
import importlib.util
import os
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from zlib import error as DeflateError  # noqa: N812  the class has a lower-case name

from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import CATALOG, DataError, Split
from mixup_core.images.data.folders import file_digest, folder_and_size, folder_digest

FILES: dict[str, dict[Split, dict[str, str]]] = {
    "fashion-mnist": {
        "train": {
            "FashionMNIST/raw/train-images-idx3-ubyte": "sha256:"
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "FashionMNIST/raw/train-labels-idx1-ubyte": "sha256:"
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        },
        "test": {
            "FashionMNIST/raw/t10k-images-idx3-ubyte": "sha256:"
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "FashionMNIST/raw/t10k-labels-idx1-ubyte": "sha256:"
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    },
    "cifar10": {
        "train": {
            "cifar-10-batches-py/data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
            "cifar-10-batches-py/data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
            "cifar-10-batches-py/data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
            "cifar-10-batches-py/data_batch_4": "md5:634d18415352ddfa80567beed471001a",
            "cifar-10-batches-py/data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
            "cifar-10-batches-py/batches.meta": "md5:5ff9c542aee3614f3951f8cda6e48888",
        },
        "test": {
            "cifar-10-batches-py/test_batch": "md5:40351d587109b95175f43aff81a1287e",
            "cifar-10-batches-py/batches.meta": "md5:5ff9c542aee3614f3951f8cda6e48888",
        },
    },
    "cifar100": {
        "train": {
            "cifar-100-python/train": "md5:16019d7e3df5f24257cddd939b257f8d",
            "cifar-100-python/meta": "md5:7973b15100ade9c7d40fb424638fde48",
        },
        "test": {
            "cifar-100-python/test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
            "cifar-100-python/meta": "md5:7973b15100ade9c7d40fb424638fde48",
        },
    },
}
"""Data set, split, path under the root (torchvision's layout), `algorithm:digest` of the contents.

The digests of the CIFAR batches are torchvision's. Those of Fashion-MNIST are of the unpacked
files, which torchvision does not check, and hold for any packager: Debian's archives differ from
those with torchvision's md5 in the gzip header (name and time) alone.
"""

_TIMEOUT = 15.0
"""Seconds without an answer or a byte after which a server is given up."""
_APT_TIMEOUT = 600.0
_MAX_UNPACKED = 64 * 1024**2
"""Bytes; above the largest file of Fashion-MNIST (47 MB), far below what a gzip bomb holds."""
_DEBIAN_PACKAGE = "dataset-fashion-mnist"
_DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
_DIGITS_ABSENT = "digits: it comes with scikit-learn; install it with `pip install scikit-learn`."
_SOURCE_FAILURES = (
    DataError,
    OSError,  # with it URLError, BadGzipFile and the timeouts of sockets
    EOFError,
    DeflateError,
    HTTPException,
    tarfile.TarError,
    subprocess.TimeoutExpired,
)


def data_root() -> Path:
    """Return the folder of the data sets as an absolute path; it need not exist yet.

    `$MIXSWEEP_DATA` if set, else `mixsweep/datasets` under `$XDG_CACHE_HOME` or `~/.cache`.
    """
    if own := os.environ.get("MIXSWEEP_DATA"):
        return Path(own).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).absolute() / "mixsweep" / "datasets"


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """One line of `mixsweep data list`."""

    name: str
    is_present: bool
    place: str
    """The folder that holds the files, or will; `scikit-learn` for digits."""


def statuses(root: Path) -> tuple[Status, ...]:
    """Return where each data set of the catalogue is or would be, without opening a file."""
    return tuple(
        Status(
            name=name,
            is_present=is_present(name, root),
            place=str(_folder(name, root)) if name in FILES else "scikit-learn",
        )
        for name in CATALOG
    )


def is_present(name: str, root: Path) -> bool:
    """Return whether all files of a data set are there and none is empty; contents are not read.

    Args:
        name: A `DatasetName`. An `image-folder` is the user's own, so it counts as present;
            `mixup_core.images.data.folders.describe` looks at it.
        root: See `data_root`; `digits` comes with scikit-learn and needs none.
    """
    if name == "image-folder":
        return True
    if name == "digits":
        return _digits_file() is not None
    paths = [root / file for split in FILES[name].values() for file in split]
    return all(path.is_file() and path.stat().st_size > 0 for path in paths)


def verify(name: str, root: Path, split: Split) -> None:
    """Check the files of one split of a downloaded data set; the other split is not opened.

    Raises:
        DataError: If a file is absent, empty, unreadable or not the published one.
    """
    again = f"`mixsweep data fetch {name}` replaces it"
    for file, published in FILES[name][split].items():
        path = root / file
        if not path.exists():
            raise DataError(
                f"{path}: not found; get it with `mixsweep data fetch {name}`, "
                "or set MIXSWEEP_DATA to the folder that holds the data sets."
            )
        if path.is_file() and path.stat().st_size == 0:
            raise DataError(f"{path}: has 0 bytes; {again}.")
        algorithm, _, expected = published.partition(":")
        if (found := file_digest(path, algorithm)) != expected:
            raise DataError(
                f"{path}: {algorithm} differs: expected {expected}, got {found}; {again}."
            )


def checksums(data: DataConfig, root: Path | None = None) -> dict[str, str]:
    """Return the sha256 of each file a run loads, for its provenance.

    Args:
        data: What the run loads: without `data.test` the test files are not listed.
        root: See `data_root`, the default.

    Returns:
        Path under the root to sha256; for an image-folder its name and `folder_digest`.

    Raises:
        DataError: If a file cannot be read.
    """
    if data.name == "image-folder":
        folder, _ = folder_and_size(data)
        return {f"{folder.resolve().name}/": folder_digest(folder)}
    if data.name == "digits":
        bundled = _digits_file()
        if bundled is None:
            raise DataError(_DIGITS_ABSENT)
        return {bundled.name: file_digest(bundled)}
    root = data_root() if root is None else root
    splits = FILES[data.name]
    files = {**splits["train"], **(splits["test"] if data.test else {})}
    return {file: file_digest(root / file) for file in files}


def fetch(name: str, root: Path) -> str:
    """Put a data set under the root if it is not there, and say where it came from.

    Its sources are tried in turn, each once; files appear under the root only when the whole set is
    complete and every digest is right. One process at a time fetches, others wait and find it.

    Args:
        name: A key of `CATALOG`.
        root: Folder to fetch into, see `data_root`; made if need be.

    Returns:
        A source such as a URL or a package; `already in ...` if nothing was to do.

    Raises:
        DataError: If no source has the data set (the message says how each failed and what to do
            by hand), or there is nothing to fetch under this name.
    """
    if name == "digits":
        if _digits_file() is None:
            raise DataError(_DIGITS_ABSENT)
        return "scikit-learn"
    if name not in FILES:
        raise DataError(f"{name}: not a data set to fetch; these are: {', '.join(CATALOG)}.")
    try:
        with locked(name, root):
            return _fetch_alone(name, root)
    except OSError as error:
        raise DataError(
            f"{root}: {error.strerror or error}; {name} cannot be put there."
        ) from error


@contextmanager
def locked(name: str, root: Path) -> Iterator[None]:
    """Be the only process that fetches or decodes a data set under a root, made if need be.

    Raises:
        OSError: If the root cannot be written, or its file system has no locks.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch_alone(name: str, root: Path) -> str:
    if _is_intact(name, root):
        return f"already in {_folder(name, root)}"
    staging = root / f".{name}.partial"
    sources, by_hand = _SOURCES[name](root)
    failures = []
    for source, obtain in sources.items():
        # What a killed process left here is of no use: it was never verified.
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            obtain(staging)
            for split in FILES[name]:
                verify(name, staging, split)
        except _SOURCE_FAILURES as error:
            failures.append(f"  {source}: {error}")
            continue
        else:
            _move_into_place(name, staging, root)
            return source
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    raise DataError("\n".join([f"{name}: no source has it.", *failures, f"By hand: {by_hand}"]))


_Sources = tuple[Mapping[str, Callable[[Path], None]], str]
"""What each source is called and how it fills a staging folder; what a user can do without them."""


def _fashion_mnist_sources(root: Path) -> _Sources:
    from torchvision.datasets import FashionMNIST  # it imports torch

    del root
    sources: dict[str, Callable[[Path], None]] = {
        mirror: partial(_unpack_mirror, mirror) for mirror in FashionMNIST.mirrors
    }
    sources[f"Debian package {_DEBIAN_PACKAGE}, installed"] = partial(_unpack_idx, _DEBIAN_FOLDER)
    sources[f"Debian package {_DEBIAN_PACKAGE}, downloaded"] = _unpack_debian_package
    return sources, (
        f"on Debian or Ubuntu `apt-get install {_DEBIAN_PACKAGE}` and fetch again; elsewhere "
        "fetch on a machine with a network and set MIXSWEEP_DATA to a copy of its folder."
    )


def _unpack_mirror(mirror: str, staging: Path) -> None:
    for file in _idx_names():
        _download(f"{mirror}{file}.gz", staging / f"{file}.gz")
    _unpack_idx(staging, staging)


def _unpack_debian_package(staging: Path) -> None:
    options = ["-o", f"Acquire::http::Timeout={_TIMEOUT:.0f}", "-o", "Acquire::Retries=0"]
    try:
        _run(["apt-get", "download", "-q", *options, _DEBIAN_PACKAGE], staging)
    except DataError as error:
        raise DataError(f"{error} (`apt-get update` brings missing package lists)") from error
    (package,) = staging.glob("*.deb")
    _run(["dpkg-deb", "-x", package.name, "unpacked"], staging)
    unpacked = staging / "unpacked" / _DEBIAN_FOLDER.relative_to(_DEBIAN_FOLDER.anchor)
    _unpack_idx(unpacked, staging)


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise DataError(f"there is no {command[0]} on this machine")
    done = subprocess.run(
        command, cwd=folder, timeout=_APT_TIMEOUT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if line.startswith(("E:", "dpkg"))]
        raise DataError(" ".join(reasons) or f"{command[0]} failed with {done.returncode}")


def _unpack_idx(compressed: Path, staging: Path) -> None:
    raw = _folder("fashion-mnist", staging)
    raw.mkdir(parents=True, exist_ok=True)
    for file in _idx_names():
        with gzip.open(compressed / f"{file}.gz") as stream:
            content = stream.read(_MAX_UNPACKED + 1)
        if len(content) > _MAX_UNPACKED:
            raise DataError(f"{file}.gz expands to more than {_MAX_UNPACKED} bytes")
        (raw / file).write_bytes(content)


def _idx_names() -> list[str]:
    return [Path(file).name for split in FILES["fashion-mnist"].values() for file in split]


def _cifar10_sources(root: Path) -> _Sources:
    from torchvision.datasets import CIFAR10  # it imports torch

    return _cifar_sources(CIFAR10, root)


def _cifar100_sources(root: Path) -> _Sources:
    from torchvision.datasets import CIFAR100  # it imports torch

    return _cifar_sources(CIFAR100, root)


def _cifar_sources(published: Any, root: Path) -> _Sources:
    """Return the archive in the root, if a user put it there, and the one torchvision names."""
    by_hand = root / published.filename

    def unpack(archive: Path, staging: Path) -> None:
        if (found := file_digest(archive, "md5")) != published.tgz_md5:
            raise DataError(f"md5 differs: expected {published.tgz_md5}, got {found}")
        with tarfile.open(archive) as tar:
            tar.extractall(staging, filter="data")

    def download(staging: Path) -> None:
        _download(published.url, staging / published.filename)
        unpack(staging / published.filename, staging)

    sources = {published.url: download}
    if by_hand.exists():
        sources = {str(by_hand): partial(unpack, by_hand), **sources}
    return sources, f"put {published.filename} (md5 {published.tgz_md5}) at {by_hand}, fetch again."


_SOURCES: dict[str, Callable[[Path], _Sources]] = {
    "fashion-mnist": _fashion_mnist_sources,
    "cifar10": _cifar10_sources,
    "cifar100": _cifar100_sources,
}


def _download(url: str, to: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "mixsweep"})  # noqa: S310
    # The addresses are torchvision's, and what comes back is checked against a digest.
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, to.open("wb") as file:  # noqa: S310
        shutil.copyfileobj(answer, file)


def _is_intact(name: str, root: Path) -> bool:
    try:
        for split in FILES[name]:
            verify(name, root, split)
    except DataError:
        return False
    return True


def _move_into_place(name: str, staging: Path, root: Path) -> None:
    _folder(name, root).mkdir(parents=True, exist_ok=True)
    for file in {file for split in FILES[name].values() for file in split}:
        (staging / file).replace(root / file)


def _folder(name: str, root: Path) -> Path:
    return (root / next(iter(FILES[name]["train"]))).parent


def _digits_file() -> Path | None:
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
