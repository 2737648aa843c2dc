"""FolderFacts: facts about an image-folder, stored so that results can be read without images."""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import DataError, SplitName
from mixup_core.images.data.folders import (
    EMPTY_CLASS,
    FileFault,
    Layout,
    all_lines,
    class_files,
    class_files_and_faults,
    content_digest,
    file_digests,
    grouped_lines,
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

    def equal_images(self) -> list[tuple[str, str]]:
        """Return pairs (image in `train/`, an earlier one with the same bytes), as CLASS/FILE."""
        first: dict[str, str] = {}
        for name, digest in self.copies.items():
            first.setdefault(digest, name)
        return [(name, first[of]) for name, of in self.copies.items() if first[of] != name]

    def in_two_classes(self, split: SplitName) -> list[tuple[str, str]]:
        """Return pairs (image, an earlier image of another class with the same bytes).

        Images are named CLASS/FILE.
        """
        first: dict[str, str] = {}
        pairs = []
        for name, digest in (self.copies if split == "train" else self.test_copies).items():
            earlier = first.setdefault(digest, name)
            if earlier.partition("/")[0] != name.partition("/")[0]:
                pairs.append((name, earlier))
        return pairs

    def shared_by(self, held_out: Sequence[str], trained: Sequence[str]) -> list[str]:
        """Return the held-out images whose bytes equal those of a training image."""
        seen = {self.copies[name] for name in trained if name in self.copies}
        return [name for name in held_out if self.copies.get(name) in seen]


def scan_folder(folder: Path, root: Path, layout: Layout | None = None) -> FolderFacts:
    """Return facts about an image-folder, such as its classes; cached until its files change.

    The header of each image is read, and the pixels of those that can be transparent.
    """
    layout = layout or Layout()
    digests = file_digests(folder, root, layout)
    digest = content_digest(digests)
    kept = root / "digests" / f"facts-{digest}.json"
    known = None
    with suppress(OSError):
        known = filled(FolderFacts, read_note(kept))
    if known is not None and (known.digest, known.decoder) == (digest, picture_reader()):
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
    """The folder."""
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
    """Decode every image of an image-folder; return its faults and near copies.

    A near copy is a test image that looks like a training image.
    """
    found = Examined(folder=folder)
    seen: dict[SplitName, dict[str, Any]] = {"train": {}, "test": {}}
    kinds: dict[SplitName, Sequence[str]] = {}
    for split, thumbnails in seen.items():
        place = folder / layout.place(split)
        if split == "test" and not place.exists():
            continue
        try:
            classes, faults = class_files_and_faults(folder, split, layout)
        except DataError as error:
            found.of_layout.append(str(error))
            continue
        found.faults += faults
        kinds[split] = list(classes)
        files = [file for of_class in classes.values() for file in of_class]
        for file in files:
            try:
                picture = rgb_picture(file, size, "white")
            except DataError as error:
                found.faults.append(FileFault.of(error, file, folder))
            else:
                thumbnails[file.relative_to(folder).as_posix()] = grey_thumbnail(picture)
    if len(kinds) == len(seen):
        # An empty class has been reported, so it is not compared with the other split.
        empty = {f.name.partition("/")[2] for f in found.faults if f.text == EMPTY_CLASS}
        train, test = ([kind for kind in kinds[s] if kind not in empty] for s in seen)
        if fault := unequal_classes(train, test, layout):
            found.of_layout.append(f"{folder}: {fault}")
    held_out, trained = (list(thumbnails) for thumbnails in (seen["test"], seen["train"]))
    pairs = near_copies(list(seen["test"].values()), list(seen["train"].values()))
    found.near = [(held_out[one], trained[other]) for one, other in pairs]
    return found


def file_faults(folder: Path, layout: Layout, splits: Sequence[SplitName]) -> list[FileFault]:
    """Return a fault for each file of an image-folder that cannot be used.

    Only names and file headers are read; no image is decoded.
    """
    found: list[FileFault] = []
    for split in splits:
        with suppress(DataError):
            classes, faults = class_files_and_faults(folder, split, layout)
            found += faults
            for file in (file for files in classes.values() for file in files):
                try:
                    with opened_picture(file):
                        pass
                except DataError as error:
                    found.append(FileFault.of(error, file, folder))
    return found


def _scanned(
    folder: Path, digests: Mapping[bytes, str], digest: str, layout: Layout
) -> FolderFacts:
    of_train = class_files(folder, "train", layout)
    splits: dict[str, Mapping[str, Sequence[Path]]] = {"train": of_train}
    if (folder / layout.test_folder).exists():
        with suppress(DataError):  # a study may do without the test images
            splits["test"] = class_files(folder, "test", layout)
    transparent, unreadable = [], {}
    for of_classes in splits.values():
        for file in (file for files in of_classes.values() for file in files):
            name = file.relative_to(folder).as_posix()
            try:
                with opened_picture(file) as opened:
                    if is_transparent(opened):
                        transparent.append(name)
            except DataError as error:
                unreadable[name] = FileFault.of(error, file, folder).text
    seen = {of_file for name, of_file in digests.items() if name.startswith(b"train/")}
    names = {
        split: {kind: tuple(file.name for file in files) for kind, files in of_classes.items()}
        for split, of_classes in splits.items()
    }
    return FolderFacts(
        digest=digest,
        classes=tuple(names["train"]),
        train=names["train"],
        test=names.get("test", {}),
        shared=tuple(
            f"{kind}/{name}"
            for kind, files in names.get("test", {}).items()
            for name in files
            if digests[os.fsencode(f"{layout.test_folder}/{kind}/{name}")] in seen
        ),
        copies=_copies(digests, "train/"),
        test_copies=_copies(digests, f"{layout.test_folder}/"),
        transparent=tuple(transparent),
        unreadable=unreadable,
        decoder=picture_reader(),
    )


def _copies(digests: Mapping[bytes, str], place: str) -> dict[str, str]:
    """Return the sha256 of each file whose bytes equal those of another file below `place`."""
    here = {os.fsdecode(name): digest for name, digest in sorted(digests.items())}
    inside = {name: digest for name, digest in here.items() if name.startswith(place)}
    counts = Counter(inside.values())
    return {n.removeprefix(place): digest for n, digest in inside.items() if counts[digest] > 1}


_SIDE = 16
"""Side, in pixels, of the grey thumbnails that are compared."""
_NEAR = 3.0
"""Root mean square difference, in grey levels, below which two thumbnails count as equal."""
_PLAIN = 4.0
"""Minimum standard deviation of a thumbnail's grey levels; plainer images are not compared."""
_AT_ONCE = 1000


def grey_thumbnail(picture: Any) -> Any:
    """Return a Pillow image as 16 x 16 grey pixels, flattened, float32."""
    import numpy as np
    from PIL import Image

    small = picture.convert("L").resize((_SIDE, _SIDE), resample=Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32).reshape(-1)


def near_copies(held_out: Sequence[Any], trained: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield (index of a test image, index of the training image that it nearly equals).

    Copies saved with another quality or size are found; cropped, rotated or mirrored ones are not.
    """
    import numpy as np

    if not held_out or not trained:
        return
    known = np.stack(trained)
    lengths = (known**2).sum(axis=1)
    for start in range(0, len(held_out), _AT_ONCE):
        part = np.stack(held_out[start : start + _AT_ONCE])
        squares = (part**2).sum(axis=1)[:, None] + lengths - 2 * part @ known.T
        nearest = squares.argmin(axis=1)
        least = squares[np.arange(len(part)), nearest]
        for place in np.flatnonzero((least < _NEAR**2 * _SIDE**2) & (part.std(axis=1) > _PLAIN)):
            yield start + int(place), int(nearest[place])
