"""FolderFacts: facts about an image-folder, stored so that results can be read without images."""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from mixup_core.arrays import Image, np
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import DataError, SplitName
from mixup_core.images.data.folders import (
    EMPTY_CLASS,
    USUAL,
    FileFault,
    Layout,
    all_lines,
    class_files,
    class_files_and_faults,
    content_digest,
    file_digests,
    grouped_lines,
    noting,
    split_classes,
    unequal_classes,
)
from mixup_core.images.data.pictures import (
    is_transparent,
    opened_picture,
    picture_reader,
    rgb_picture,
)
from mixup_core.store.errors import StoreError
from mixup_core.store.json_records import AnyText, filled, read_note
from mixup_core.store.local_files import write_durably


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderFacts:
    """Facts about the images of an image-folder, for planning and reports."""

    # Frozen: each field name here. After a change, stored results cannot be read without their
    # images; tests/golden/test_keys.py fails.
    digest: str
    """Result of `mixup_core.images.data.folders.folder_digest` for the folder."""
    classes: tuple[AnyText, ...]
    """Names of the classes in the order of the labels."""
    train: Mapping[AnyText, tuple[AnyText, ...]]
    """Names of the images in `train/` by class, in the order of loading."""
    test: Mapping[AnyText, tuple[AnyText, ...]]
    """Names of the images in the test folder by class; empty if it is missing or not usable."""
    shared: tuple[AnyText, ...] = ()
    """Images in the test folder whose bytes equal those of an image in `train/`, as CLASS/FILE."""
    copies: Mapping[AnyText, AnyText] = dataclasses.field(default_factory=dict)
    """sha256 of images in `train/` that have the same bytes as another one, by CLASS/FILE."""
    test_copies: Mapping[AnyText, AnyText] = dataclasses.field(default_factory=dict)
    """sha256 of test images that have the same bytes as another test image, by CLASS/FILE."""
    transparent: tuple[AnyText, ...] = ()
    """Images with pixels that are not fully opaque, as SPLIT/CLASS/FILE."""
    unreadable: Mapping[AnyText, AnyText] = dataclasses.field(default_factory=dict)
    """Images that cannot be used, judged by their file headers: the reason, by SPLIT/CLASS/FILE."""
    decoder: str = ""
    """Name and version of the code that read the images, by `pictures.picture_reader`."""

    def names(self, data: DataConfig, split: SplitName) -> list[str]:
        """Return the names of a split's images as CLASS/FILE, in the order of loading."""
        train, test = split_classes(data, self.train, self.test)
        of_classes = train if split == "train" else test
        return [f"{kind}/{name}" for kind in self.classes for name in of_classes.get(kind, ())]

    def equal_images(self, split: SplitName) -> list[tuple[str, str]]:
        """Return pairs (image, the first image of the split with the same bytes), as CLASS/FILE."""
        first: dict[str, str] = {}
        copies = self.copies if split == "train" else self.test_copies
        pairs = ((name, first.setdefault(digest, name)) for name, digest in copies.items())
        return [(name, earlier) for name, earlier in pairs if earlier != name]

    def in_two_classes(self, split: SplitName) -> list[tuple[str, str]]:
        """Return the pairs of `equal_images` that are in different classes."""
        pairs = self.equal_images(split)
        return [(a, b) for a, b in pairs if a.partition("/")[0] != b.partition("/")[0]]

    def shared_by(self, held_out: Sequence[str], trained: Sequence[str]) -> list[str]:
        """Return the held-out images whose bytes equal those of a training image."""
        seen = {self.copies[name] for name in trained if name in self.copies}
        return [name for name in held_out if self.copies.get(name) in seen]


def scan_folder(folder: Path, root: Path, layout: Layout = USUAL) -> FolderFacts:
    """Return facts about an image-folder, such as its classes; cached until its files change."""
    digests = file_digests(folder, root, layout)
    digest = content_digest(digests)
    kept = root / "digests" / f"facts-{digest}.json"
    with suppress(OSError):
        known = filled(FolderFacts, read_note(kept))
        if known and (known.digest, known.decoder) == (digest, picture_reader()):
            return known
    found = _scanned(folder, digests, digest, layout)
    with suppress(OSError, StoreError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_durably(kept, json.dumps(dataclasses.asdict(found)).encode())
    return found


@dataclass(kw_only=True, slots=True)
class Examined:
    """Faults found in an image-folder by decoding all its images."""

    folder: Path
    faults: list[FileFault] = dataclasses.field(default_factory=list)
    """Files that cannot be used, and empty classes."""
    of_layout: list[str] = dataclasses.field(default_factory=list)
    """One line for each fault of the folders, such as a class without test images."""
    near: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """Pairs of a test image and a training image that look alike, as SPLIT/CLASS/FILE."""

    @property
    def number(self) -> int:
        """Number of faults found in the image-folder, in its files and in its subfolders."""
        return len(self.faults) + len(self.of_layout)

    @property
    def can_skip(self) -> bool:
        """True if some files of the image-folder cannot be used; `data.skip` can leave them out."""
        return any(fault.text != EMPTY_CLASS for fault in self.faults)

    def lines(self, *, names_all: bool) -> list[str]:
        """Return lines of text that describe the faults of the image-folder."""
        spell = all_lines if names_all else grouped_lines
        return [*spell(self.folder, self.faults), *self.of_layout]


def examine(folder: Path, size: int, layout: Layout) -> Examined:
    """Decode every image of an image-folder; return its faults and near copies."""
    found = Examined(folder=folder)
    seen: dict[SplitName, dict[str, Any]] = {"train": {}, "test": {}}
    kinds: list[Set[str]] = []
    for split, thumbnails in seen.items():
        if split == "test" and not (folder / layout.place(split)).exists():
            continue
        try:
            classes, faults = class_files_and_faults(folder, split, layout)
        except DataError as error:
            found.of_layout.append(str(error))
            continue
        kinds.append(classes.keys())
        found.faults += faults
        for file in chain.from_iterable(classes.values()):
            with noting(found.faults, file, folder):
                picture = rgb_picture(file, size, "white")
                thumbnails[file.relative_to(folder).as_posix()] = _grey_thumbnail(picture)
    # An empty class is a fault already, so it is not compared with the other split.
    empty = {f.name.partition("/")[2] for f in found.faults if f.text == EMPTY_CLASS}
    if len(kinds) == len(seen):
        train, test = (names - empty for names in kinds)
        if fault := unequal_classes(train, test, layout):
            found.of_layout.append(f"{folder}: {fault}")
    found.near = list(_near_copies(seen["test"], seen["train"]))
    return found


def file_faults(folder: Path, layout: Layout, splits: Sequence[SplitName]) -> list[FileFault]:
    """Return a fault for each file of an image-folder that cannot be used, by name and header."""
    found: list[FileFault] = []
    for split in splits:
        with suppress(DataError):
            classes, faults = class_files_and_faults(folder, split, layout)
            found += [*faults, *_by_header(folder, classes)[1]]
    return found


def _by_header(
    folder: Path, classes: Mapping[str, Sequence[Path]]
) -> tuple[list[str], list[FileFault]]:
    """Return the transparent images, as SPLIT/CLASS/FILE, and a fault for each unusable one."""
    transparent: list[str] = []
    faults: list[FileFault] = []
    for file in chain.from_iterable(classes.values()):
        with noting(faults, file, folder), opened_picture(file) as opened:
            if is_transparent(opened):
                transparent.append(file.relative_to(folder).as_posix())
    return transparent, faults


def _scanned(
    folder: Path, digests: Mapping[bytes, str], digest: str, layout: Layout
) -> FolderFacts:
    train, test = class_files(folder, "train", layout), dict[str, tuple[Path, ...]]()
    if (folder / layout.test_folder).exists():
        with suppress(DataError):  # a study may do without the test images
            test = class_files(folder, "test", layout)
    transparent, faults = map(chain, *(_by_header(folder, classes) for classes in (train, test)))
    seen = {of_file for name, of_file in digests.items() if name.startswith(b"train/")}
    names = [
        {kind: tuple(file.name for file in files) for kind, files in classes.items()}
        for classes in (train, test)
    ]
    return FolderFacts(
        digest=digest,
        classes=tuple(train),
        train=names[0],
        test=names[1],
        shared=tuple(
            f"{kind}/{name}"
            for kind, files in names[1].items()
            for name in files
            if digests[os.fsencode(f"{layout.test_folder}/{kind}/{name}")] in seen
        ),
        copies=_copies(digests, "train/"),
        test_copies=_copies(digests, f"{layout.test_folder}/"),
        transparent=tuple(transparent),
        unreadable={fault.name: fault.text for fault in faults},
        decoder=picture_reader(),
    )


def _copies(digests: Mapping[bytes, str], place: str) -> dict[str, str]:
    """Return the sha256 of each file whose bytes equal those of another file below `place`."""
    here = {os.fsdecode(name): digest for name, digest in sorted(digests.items())}
    inside = {n.removeprefix(place): digest for n, digest in here.items() if n.startswith(place)}
    counts = Counter(inside.values())
    return {name: digest for name, digest in inside.items() if counts[digest] > 1}


_SIDE = 16
"""Side, in pixels, of the grey thumbnails that are compared."""
_NEAR = 3.0
"""Root mean square difference, in grey levels, below which two thumbnails count as equal."""
_PLAIN = 4.0
"""Minimum standard deviation of a thumbnail's grey levels; plainer images are not compared."""
_AT_ONCE = 100
"""Number of test images that are compared with all training images in one matrix product."""


def _grey_thumbnail(picture: Any) -> Any:
    """Return a Pillow image as 16 x 16 grey pixels, flattened, float32."""
    small = picture.convert("L").resize((_SIDE, _SIDE), resample=Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32).reshape(-1)


def _near_copies(
    held_out: Mapping[str, Any], trained: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield (test image, training image that it nearly equals), given the thumbnails of all."""
    if not trained:
        return
    known, names = np.stack(list(trained.values())), list(trained)
    lengths, rest = (known**2).sum(axis=1), iter(held_out.items())
    # One matrix product for many images is ten times as fast as one for each.
    while some := list(islice(rest, _AT_ONCE)):
        products = np.stack([thumbnail for _, thumbnail in some]) @ known.T
        for (name, thumbnail), product in zip(some, products, strict=True):
            squares = (thumbnail**2).sum() + lengths - 2 * product
            nearest = int(squares.argmin())
            if squares[nearest] < _NEAR**2 * _SIDE**2 and thumbnail.std() > _PLAIN:
                yield name, names[nearest]
