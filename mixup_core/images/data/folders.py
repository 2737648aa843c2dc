"""Image folders: a user's own images in `train/<class>/*` and `test/<class>/*`."""

import hashlib
import math
import os
import re
import shlex
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

from mixup_core.arrays import Image
from mixup_core.images.data.data_config import DataConfig, TestFolder
from mixup_core.images.data.digests import KnownDigests
from mixup_core.images.data.facts import DataError, DatasetInfo, SplitName
from mixup_core.images.data.pictures import FORMATS
from mixup_core.images.data.sets import DATASETS
from mixup_core.rules import listed, printable

EMPTY_CLASS = "an empty class; add an image, or leave the class out with data.skip."
_ADVICE = "convert or remove these files, or leave them out with data.skip"
_NAMED = 3
"""Number of files that a line about many files names. So many or fewer have a line each."""
_MOST_LINES = 20
_VARIABLE = re.compile(r"\d[\d.,]*|'[^']*'")
"""Parts of a text that differ between files with the same fault: numbers and quoted names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFault:
    """A file or class folder of an image-folder that cannot be used, and the reason."""

    name: str
    """Path relative to the image-folder, with `/`."""
    text: str
    """The fault and its remedy, as a sentence."""


@contextmanager
def noting(faults: list[FileFault], file: Path, folder: Path) -> Iterator[None]:
    """Context manager: add a fault of a file to a list instead of raising its error."""
    try:
        yield
    except DataError as error:
        text = str(error).removeprefix(f"{printable(str(file))}: ")
        faults.append(FileFault(name=file.relative_to(folder).as_posix(), text=text))


class FileFaultsError(DataError):
    """Error: files of an image-folder cannot be used. If they are many, the message names some."""

    def __init__(self, folder: Path, faults: Sequence[FileFault]) -> None:
        advice = [] if all(fault.text == EMPTY_CLASS for fault in faults) else [_ADVICE]
        super().__init__("\n".join([*grouped_lines(folder, faults), *advice]))


def all_lines(folder: Path, faults: Iterable[FileFault]) -> list[str]:
    """Return one line for each file of an image-folder that cannot be used."""
    return [printable(f"{folder / fault.name}: {fault.text}") for fault in faults]


def grouped_lines(folder: Path, faults: Sequence[FileFault]) -> list[str]:
    """Return at most 20 lines about files that cannot be used; many with one fault share a line.

    Faults whose texts differ only in numbers and quoted names count as the same. If the lines do
    not name every file, one more line gives the command that does.
    """
    groups: dict[str, list[FileFault]] = defaultdict(list)
    for fault in faults:
        groups[_VARIABLE.sub("", fault.text)].append(fault)
    lines: list[str] = []
    for group in groups.values():
        if len(group) <= _NAMED:
            lines += all_lines(folder, group)
            continue
        first = ", ".join(fault.name for fault in group[:_NAMED])
        is_same = len({fault.text for fault in group}) == 1
        text = group[0].text if is_same else f"the first of them: {group[0].text}"
        number = f"{len(group):,} files, {first} and {len(group) - _NAMED:,} more"
        lines.append(printable(f"{folder}: {number}: {text}"))
    if len(lines) == len(faults) <= _MOST_LINES:
        return lines
    more = len(lines) - _MOST_LINES
    rest = f"{more} more lines; " if more > 0 else ""
    command = f"mixsweep data check {shlex.quote(str(folder))} --all"
    return [*lines[:_MOST_LINES], printable(f"{rest}`{command}` lists every file")]


TEST_FOLDERS = get_args(TestFolder)
"""Possible names of the folder of test images; the first that exists is used."""


def first_test_folder(folder: Path) -> TestFolder | None:
    """Return the name of the folder of test images in an image-folder, or None."""
    return next((name for name in TEST_FOLDERS if (folder / name).is_dir()), None)


_HALVES = (0.5, 0.5, 0.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Rules that decide which files of an image-folder are images to use."""

    test_folder: str = "test"
    skip: tuple[str, ...] = ()
    """Files and class folders to leave out, relative to the folder; `*` and `?` are wildcards."""

    @classmethod
    def of(cls, data: DataConfig) -> Self:
        """Return the rules, set by `data.test_folder` and `data.skip`, that select the images."""
        return cls(test_folder=data.test_folder or "test", skip=data.skip or ())

    def place(self, split: SplitName) -> str:
        """Return the subfolder with the images of a split: `train`, or the test folder's name."""
        return self.test_folder if split == "test" else split

    def has(self, name: str) -> bool:
        """Return whether a file or subfolder of an image-folder is used.

        It is used if no pattern of `skip` leaves it out. The patterns `train/owl`, `train/owl/` and
        `train/owl/*` leave out a folder with its files.
        """
        return not self.skip or _skipped(self.skip).match(name) is None


@cache
def _skipped(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return the regular expression of names that patterns of `skip` leave out."""
    folders = [pattern.rstrip("*").rstrip("/") for pattern in patterns]
    everything = [*patterns, *folders, *(f"{folder}/*" for folder in folders)]
    return re.compile("|".join(map(translate, everything)))


USUAL = Layout()


def describe(data: DataConfig) -> DatasetInfo:
    """Return sizes, classes and other facts about a run's dataset, without decoding images."""
    if data.name != "image-folder":
        info = DATASETS[data.name].info
        mean, std = data.pixel_mean or info.mean, data.pixel_std or info.std
        size = info.image_size if data.image_size is None else data.image_size
        if (size, mean, std) == (info.image_size, info.mean, info.std):
            return info
        return replace(info, image_size=size, mean=mean, std=std)
    layout, (folder, _) = Layout.of(data), data.photos
    train = class_files(folder, "train", layout)
    is_tested = data.test and data.test_fraction is None
    return folder_info(data, train, class_files(folder, "test", layout) if is_tested else {})


def folder_info(
    data: DataConfig, train: Mapping[str, Sequence[Any]], test: Mapping[str, Sequence[Any]]
) -> DatasetInfo:
    """Return sizes, classes and other facts about an image-folder, given its files by class."""
    folder, image_size = data.photos
    if data.test_fraction is not None and min(map(len, train.values())) < 2:
        lacking = [name for name, files in train.items() if len(files) < 2]
        raise DataError(
            f"{folder}: data.test_fraction needs two images of each class in train/; "
            f"only one in {listed(lacking)}."
        )
    train, test = split_classes(data, train, test)
    if data.test and (fault := unequal_classes(train, test, Layout.of(data))):
        raise DataError(f"{folder}: {fault}")
    return DatasetInfo(
        title=folder.resolve().name,
        num_train=sum(map(len, train.values())),
        num_test=sum(map(len, test.values())),
        num_classes=len(train),
        channels=3,
        image_size=image_size,
        mean=data.pixel_mean or _HALVES,
        std=data.pixel_std or _HALVES,
        smallest_class=min(map(len, train.values())),
        classes=tuple(train),
    )


def unequal_classes(train: Iterable[str], test: Iterable[str], layout: Layout) -> str:
    """Return a message if the classes of training and test images differ, else ""."""
    own, others = set(train), set(test)
    found = {"train": sorted(own - others), layout.test_folder: sorted(others - own)}
    only = [f"only in {place}/: {listed(names)}" for place, names in found.items() if names]
    if not only:
        return ""
    first = next(f"{place}/{names[0]}" for place, names in found.items() if names)
    alike = spelled_alike(own ^ others)
    advice = f"data.skip leaves out a class, such as {printable(first)}"
    if alike:
        one, other = map(printable, alike[0][:2])
        differ = "capital letters"
        if len({unicodedata.normalize("NFC", name) for name in alike[0][:2]}) == 1:
            one, other, differ = ascii(one), ascii(other), "the Unicode form of an accent"
        advice = f"{one} and {other} differ only in {differ}; give both folders the same name"
    rule = f"train/ and {layout.test_folder}/ must have the same classes"
    return f"{rule}; {'; '.join(only)}. {advice}."


_Files = TypeVar("_Files", Path, str)


def split_classes(
    data: DataConfig,
    train: Mapping[str, Sequence[_Files]],
    test: Mapping[str, Sequence[_Files]],
) -> tuple[Mapping[str, Sequence[_Files]], Mapping[str, Sequence[_Files]]]:
    """Return the training images and the test images of an image-folder, each by class.

    With `data.test_fraction`, this share of each class in `train/` becomes test images: those whose
    names have the lowest sha256. An image that is added thus moves at most one other image between
    the splits. If `data.test` is false, there are no test images.
    """
    if data.test_fraction is None:
        return train, test if data.test else {}
    kept: dict[str, Sequence[_Files]] = {}
    taken: dict[str, Sequence[_Files]] = {}
    for kind, files in train.items():
        number = min(max(1, math.floor(data.test_fraction * len(files) + 0.5)), len(files) - 1)
        drawn = sorted(files, key=lambda file: _drawn(f"{kind}/{Path(file).name}"))
        held_out = set(drawn[:number])
        kept[kind] = [file for file in files if file not in held_out]
        taken[kind] = [file for file in files if file in held_out]
    return kept, taken if data.test else {}


# Frozen: this hash, by which test images are chosen. After a change, new runs differ from stored
# runs of the same key; tests/mixup_core/images/data/test_layouts.py fails.
def _drawn(name: str) -> bytes:
    return hashlib.sha256(f"test split {name}".encode("utf-8", "surrogateescape")).digest()


def class_files(
    folder: Path, split: SplitName, layout: Layout = USUAL
) -> dict[str, tuple[Path, ...]]:
    """Return the image files of one split by class; classes and files are sorted by name.

    Hidden files (names with a leading dot) and files that Windows and macOS create (`Thumbs.db`)
    are ignored at every level. Images are recognised by their suffix; the loader checks that they
    can be decoded.
    """
    classes, faults = class_files_and_faults(folder, split, layout)
    if faults:
        raise FileFaultsError(folder, faults)
    return classes


def class_files_and_faults(
    folder: Path, split: SplitName, layout: Layout = USUAL
) -> tuple[dict[str, tuple[Path, ...]], list[FileFault]]:
    """Return one split's image files by class, and a `FileFault` for each file that is no image."""
    place = layout.place(split)
    if folder.is_dir() and not (folder / place).exists():
        raise DataError(f"{folder / place}: not found; {_without(folder, split)}")
    classes: dict[str, list[Path]] = {}
    faults, filled = [], set()
    for name, entry in used_entries(folder, place, layout):
        _, kind, *file = name.split("/", 3)
        if not file and entry.is_dir():
            classes[kind] = []
        elif not file:
            faults.append(FileFault(name=name, text="a file where a class folder should be."))
        elif len(file) == 1:
            filled.add(kind)
            if text := _fault(Path(entry.path)):
                faults.append(FileFault(name=name, text=text))
            else:
                classes[kind].append(Path(entry.path))
    faults += [FileFault(name=f"{place}/{k}", text=EMPTY_CLASS) for k in classes if k not in filled]
    if not classes and not faults:
        raise DataError(f"{folder / place}: no class folders; put images into {place}/<class>/.")
    return {kind: tuple(files) for kind, files in classes.items()}, faults


def unused_folders(folder: Path, layout: Layout) -> str:
    """Return a note that lists the subfolders from which no run reads; "" if there are none."""
    used = {"train", layout.test_folder}
    names = [e.name for e in _entries(folder) if e.is_dir() and layout.has(e.name)]
    listed = ", ".join(f"{printable(name)}/" for name in names if name not in used)
    advice = "for validation, data.val_size holds out images of train/"
    return f"folders not used: {listed}; {advice}" if listed else ""


def _without(folder: Path, split: SplitName) -> str:
    """Return the advice of messages about a folder that lacks training or test images."""
    if split == "test":
        return (
            "put images into test/<class>/, or set data.test_fraction: 0.2 to hold out a part of "
            "train/, or data.test: false to do without test images."
        )
    there = [f"{entry.name}/" for entry in _entries(folder) if entry.is_dir()]
    return (
        f"an image-folder contains train/<class>/* and test/<class>/*; this one contains "
        f"{listed(there) or 'no folders'}. Move folders of classes into train/, and set "
        "data.test_fraction: 0.2 if there is no test/."
    )


def _fault(file: Path) -> str:
    if file.is_dir():
        return "not an image file but a folder; a class folder must contain only images."
    if file.is_symlink() and not file.exists():
        return f"a link to {printable(str(file.readlink()))!r} that leads to no file."
    if file.is_file() and file.suffix.lower() in _image_suffixes():
        return ""
    return "not an image file; a class folder must contain only images."


def folder_digest(folder: Path, root: Path, layout: Layout = USUAL) -> str:
    """Return the sha256 of the names and contents of all files below `train/` and `test/`.

    It is the sha256 of the output of `sha256sum -z` for these files, with relative names in byte
    order, and therefore does not depend on the folder's location. Unchanged files are not read
    again.
    """
    return content_digest(file_digests(folder, root, layout))


def file_digests(folder: Path, root: Path, layout: Layout = USUAL) -> dict[bytes, str]:
    """Return the sha256 of each file below `train/` and `test/`, by relative name."""
    place = folder.absolute()
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    known = KnownDigests(root / "digests" / f"{name}.json")
    test = [layout.test_folder] if (folder / layout.test_folder).exists() else []
    files = {
        os.fsencode(name): known.of(entry)
        for split in ("train", *test)
        for name, entry in used_entries(place, split, layout)
        if not entry.is_dir()
    }
    known.keep()
    return files


# Frozen: what this returns for old image-folders, because keys depend on it. After a change, stored
# results are not found; tests/golden/test_keys.py fails.
def content_digest(files: Mapping[bytes, str]) -> str:
    """Return one sha256 for many files: that of the output of `sha256sum -z`, sorted by name."""
    digest = hashlib.sha256()
    for name, of_file in sorted(files.items()):
        digest.update(f"{of_file}  ".encode() + name + b"\0")
    return digest.hexdigest()


def used_entries(folder: Path, name: str, layout: Layout) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files and folders below a subfolder, sorted, each after its folder, by name."""
    place = folder / name
    with _refusing(place), os.scandir(place) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        below = f"{name}/{entry.name}"
        if _is_seen(entry.name) and layout.has(below):
            yield below, entry
            if entry.is_dir():
                yield from used_entries(folder, below, layout)


def _is_seen(name: str) -> bool:
    return not name.startswith(".") and name not in {"Thumbs.db", "desktop.ini", "__MACOSX"}


def _entries(folder: Path) -> list[Path]:
    with _refusing(folder):
        return sorted(entry for entry in folder.iterdir() if _is_seen(entry.name))


@contextmanager
def _refusing(folder: Path | str) -> Iterator[None]:
    """Convert errors of listing a folder into a `DataError` with a message for the user."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"{folder}: not found; an image-folder contains train/<class>/* and test/<class>/*."
        ) from error
    except NotADirectoryError as error:
        raise DataError(f"{folder}: expected a folder, found a file.") from error
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror}.") from error


@cache
def _image_suffixes() -> frozenset[str]:
    formats = Image.registered_extensions()
    return frozenset(suffix for suffix, name in formats.items() if name in {*FORMATS, "MPO"})


def spelled_alike(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that some file systems treat as the same name, such as a and A."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        composed = unicodedata.normalize("NFC", name).casefold()
        groups[unicodedata.normalize("NFC", composed)].append(name)
    return [group for group in groups.values() if len(group) > 1]
