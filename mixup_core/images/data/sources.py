"""Sources: downloads files and unpacks archives; the caller verifies them. Imports no torch."""

import shutil
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data.digests import file_digest
from mixup_core.images.data.facts import DataError, Sources, SplitName
from mixup_core.temporary import temporary_folder

TIMEOUT = 15.0
"""Seconds without receiving a byte after which a download fails."""


def download(url: str, to: Path) -> None:
    """Download a URL to a file; missing folders are created."""
    to.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "mixsweep"})  # noqa: S310
    # The addresses are published ones, and each downloaded file is checked against a digest.
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, to.open("wb") as file:  # noqa: S310
        shutil.copyfileobj(answer, file)


def downloaded(urls: Mapping[str, str], root: Path) -> Sources:
    """Return a mapping from URLs to a function that downloads a dataset's files, and advice."""

    def fill(staging: Path) -> None:
        for path, url in urls.items():
            download(url, staging / path)

    names = ", ".join(str(root / path) for path in urls)
    return {", ".join(urls.values()): fill}, f"download {', '.join(urls.values())} to {names}."


def unpacked_archive(url: str, filename: str, md5: str, root: Path) -> Sources:
    """Return functions that unpack a dataset's tar archive into a folder, by source, and advice."""
    by_hand = root / filename

    def unpack(archive: Path, staging: Path) -> None:
        if (found := file_digest(archive, "md5")) != md5:
            raise DataError(f"md5 differs: {archive.name} must have {md5}, got {found}")
        extract(archive, staging)

    def obtain(staging: Path) -> None:
        download(url, staging / filename)
        unpack(staging / filename, staging)

    sources = {url: obtain}
    if by_hand.exists():
        sources = {str(by_hand): partial(unpack, by_hand), **sources}
    return sources, f"put {filename} (md5 {md5}) at {by_hand} and fetch again."


def published_archive(name: str, root: Path) -> Sources:
    """Return functions that unpack the tar archive of a dataset of torchvision, and advice."""
    published = getattr(torchvision.datasets, name)
    return unpacked_archive(published.url, published.filename, published.tgz_md5, root)


def both_splits_in(archive: str, md5: str) -> Mapping[SplitName, Mapping[str, str]]:
    """Return the files of a dataset whose splits are in one archive, with its checksum."""
    return {"train": {archive: f"md5:{md5}"}, "test": {archive: f"md5:{md5}"}}


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Context manager: unpack a tar or zip archive into a temporary folder."""
    with temporary_folder(Path(tempfile.gettempdir()), "mixsweep-archive-") as own:
        folder = own / "archive"
        extract(archive, folder)
        yield folder


def extract(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip archive into a folder."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)  # noqa: S202  a zip's members stay inside, and its md5 is known
    else:
        with tarfile.open(archive) as packed_tar:
            packed_tar.extractall(folder, filter="data")
