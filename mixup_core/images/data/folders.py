"""Image folders: a user's own images as `train/<class>/*` and `test/<class>/*`. No torch."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import CATALOG, DataError, DatasetInfo, Split
from mixup_core.images.data.digests import KnownDigests
from mixup_core.images.data.pictures import FORMATS
from mixup_core.rules import printable

_HALVES = (0.5, 0.5, 0.5)


def describe(data: DataConfig) -> DatasetInfo:
    """Return what is known of a data set without decoding an image.

    An image-folder is scanned: its classes are the folders under `train/`, its title is the name of
    the folder. With `data.test` false, `test/` is not looked at and `num_test` is 0.

    Raises:
        DataError: If an image-folder is not laid out as `class_files` asks, or if the classes under
            `train/` and `test/` differ.
    """
    if data.name != "image-folder":
        info = CATALOG[data.name]
        return info if data.image_size is None else replace(info, image_size=data.image_size)
    folder, _ = folder_and_size(data)
    train = class_files(folder, "train")
    test = class_files(folder, "test") if data.test else {}
    return folder_info(data, train, test)


def folder_info(
    data: DataConfig, train: Mapping[str, Sequence[Any]], test: Mapping[str, Sequence[Any]]
) -> DatasetInfo:
    """Return what is known of an image-folder from the images of each class.

    Args:
        data: The folder and the size of its images; the folder need not be there.
        train: Class to its training images.
        test: Class to its test images; ignored if `data.test` is false.

    Raises:
        DataError: If the classes of training and test images differ.
    """
    folder, image_size = folder_and_size(data)
    test = test if data.test else {}
    if data.test and train.keys() != test.keys():
        raise DataError(
            f"{folder}: train/ and test/ must have the same classes; "
            f"only in train/: {sorted(train.keys() - test.keys())}, "
            f"only in test/: {sorted(test.keys() - train.keys())}."
        )
    return DatasetInfo(
        title=folder.resolve().name,
        num_train=sum(map(len, train.values())),
        num_test=sum(map(len, test.values())),
        num_classes=len(train),
        channels=3,
        image_size=image_size,
        mean=_HALVES,
        std=_HALVES,
        smallest_class=min(map(len, train.values())),
        classes=tuple(train),
    )


def folder_and_size(data: DataConfig) -> tuple[Path, int]:
    """Return where an image-folder lies and the side its images get, in pixels.

    Raises:
        ValueError: If the data set is no image-folder.
    """
    if data.folder is None or data.image_size is None:
        raise ValueError(f"`data.name is image-folder` must hold, got (data.name={data.name!r}).")
    return Path(data.folder), data.image_size


def class_files(folder: Path, split: Split) -> dict[str, tuple[Path, ...]]:
    """Return the image files of each class of one split; classes and files sorted by name.

    Names that start with a dot are ignored at every level, as is what Windows leaves in folders.
    Files are told by their suffix here; the loader finds out whether they can be decoded.

    Raises:
        DataError: If a folder is missing, unreadable or empty, a file lies where a class folder
            should be, or a class holds anything but files with the suffix of one of `FORMATS`.
    """
    classes = {}
    for class_folder in _entries(folder / split):
        if not class_folder.is_dir():
            raise DataError(f"{_line(class_folder)}: a file where a class folder should be.")
        files = tuple(_entries(class_folder))
        for file in files:
            if not file.is_file() or file.suffix.lower() not in _image_suffixes():
                raise DataError(
                    f"{_line(file)}: not an image file; a class folder holds images only."
                )
        if not files:
            raise DataError(f"{_line(class_folder)}: an empty class; each class needs an image.")
        classes[class_folder.name] = files
    if not classes:
        raise DataError(f"{folder / split}: no class folders; images lie in {split}/<class>/.")
    return classes


def folder_digest(folder: Path, root: Path) -> str:
    """Return the sha256 over the names and contents of all files under `train/` and `test/`.

    It is the sha256 of what `sha256sum -z` prints for them, relative names in byte order, and so
    the same wherever the folder lies. Hidden files do not count; neither does a missing `test/`.
    Files that have not changed since the last time are not read again.

    Args:
        folder: What is digested.
        root: Folder of the data sets, where the digests of files are kept.

    Returns:
        64 hexadecimal digits.

    Raises:
        DataError: If `train/` or a file in it is missing or unreadable.
    """
    return content_digest(file_digests(folder, root))


def file_digests(folder: Path, root: Path) -> dict[bytes, str]:
    """Return the sha256 of all files under `train/` and `test/` by their names from the folder.

    Args:
        folder: The folder.
        root: Folder of the data sets, where the digests of files are kept.

    Raises:
        DataError: If `train/` or a file in it is missing or unreadable.
    """
    splits = ["train", *(["test"] if (folder / "test").exists() else [])]
    place = folder.absolute()
    known = KnownDigests(
        root / "digests" / f"{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}.json"
    )
    files = {
        os.fsencode(name): known.of(entry)
        for split in splits
        for name, entry in _walk(str(place / split), split)
    }
    known.keep()
    return files


def content_digest(files: Mapping[bytes, str]) -> str:
    """Return the sha256 over names and sha256 of files (`folder_digest`)."""
    digest = hashlib.sha256()
    for name, of_file in sorted(files.items()):
        digest.update(f"{of_file}  ".encode() + name + b"\0")
    return digest.hexdigest()


def _walk(folder: str, name: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield each file below a folder with its name from there; paths are slow by the 10,000."""
    with _refusing(folder), os.scandir(folder) as found:
        entries = [entry for entry in found if not _is_hidden(entry.name)]
    for entry in entries:
        if entry.is_dir():
            yield from _walk(entry.path, f"{name}/{entry.name}")
        else:
            yield f"{name}/{entry.name}", entry


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_BY_WINDOWS


_LEFT_BY_WINDOWS = frozenset({"Thumbs.db", "desktop.ini"})


def _entries(folder: Path) -> list[Path]:
    with _refusing(folder):
        return sorted(entry for entry in folder.iterdir() if not _is_hidden(entry.name))


@contextmanager
def _refusing(folder: Path | str) -> Iterator[None]:
    """Say of a folder that cannot be listed what is wrong with it.

    Raises:
        DataError: In place of any error of the system.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"{folder}: not found; an image-folder holds train/<class>/* and test/<class>/*."
        ) from error
    except NotADirectoryError as error:
        raise DataError(f"{folder}: a file where a folder should be.") from error
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror}.") from error


def _line(path: Path) -> str:
    """Return a path on one line: names of files may hold what commands a terminal."""
    return printable(str(path))


@cache
def _image_suffixes() -> frozenset[str]:
    from PIL import Image  # studies of other data sets need no Pillow

    formats = Image.registered_extensions()
    return frozenset(suffix for suffix, name in formats.items() if name in {*FORMATS, "MPO"})
