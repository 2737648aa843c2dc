"""FolderFacts: what is known of an image-folder under its digest, with the images or without."""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mixup_core.images.data.catalog import DataError, SplitName
from mixup_core.images.data.folders import (
    Layout,
    class_files,
    content_digest,
    file_digests,
    split_classes,
)
from mixup_core.images.data.near_copies import grey_thumbnail, near_copies
from mixup_core.images.data.pictures import is_transparent, opened_picture, rgb_picture
from mixup_core.images.data_config import DataConfig
from mixup_core.rules import printable
from mixup_core.store.notes import filled, read_note


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderFacts:
    """Facts of the images of a folder, as far as planning and reports need them."""

    digest: str
    """`mixup_core.images.data.folders.folder_digest` of the folder."""
    classes: tuple[str, ...]
    """Names in the order of the labels."""
    train: Mapping[str, tuple[str, ...]]
    """Class to the names of its training images, in the order in which they are loaded."""
    test: Mapping[str, tuple[str, ...]]
    """Test images, as `train`; empty if there is no test folder."""
    shared: tuple[str, ...] = ()
    """Test images, as CLASS/FILE, whose bytes are those of a training image too."""
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Images in `train/`, as CLASS/FILE, that have the bytes of another there, to their sha256."""
    transparent: tuple[str, ...] = ()
    """Images with pixels that are not opaque, as SPLIT/CLASS/FILE."""
    unreadable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Images whose heads refuse them, as SPLIT/CLASS/FILE, to what is wrong with each."""
    decoder: str = ""
    """Version of Pillow that looked at the images."""

    def names(self, data: DataConfig, split: SplitName) -> list[str]:
        """Return the images of a split as CLASS/FILE, in the order in which they are loaded."""
        train, test = split_classes(data, self.train, self.test)
        of_classes = train if split == "train" else test
        return [f"{kind}/{name}" for kind in self.classes for name in of_classes.get(kind, ())]

    def shared_by(self, held_out: Sequence[str], trained: Sequence[str]) -> list[str]:
        """Return the images held out of `train/` whose bytes are those of one trained on."""
        seen = {self.copies[name] for name in trained if name in self.copies}
        return [name for name in held_out if self.copies.get(name) in seen]


def scan_folder(folder: Path, root: Path, layout: Layout | None = None) -> FolderFacts:
    """Return the facts of an image folder; it is scanned again only after its files change.

    The head of each image is opened, and the pixels of those that may be transparent.

    Args:
        folder: The folder.
        root: Folder of the data sets, where what was found is kept.
        layout: Which of its files are its images; None: those that are usual.

    Raises:
        DataError: If it is not laid out as `class_files` asks.
    """
    layout = layout or Layout()
    digests = file_digests(folder, root, layout)
    digest = content_digest(digests)
    kept = root / "digests" / f"folder-{digest}.json"
    known = filled(FolderFacts, read_note(kept))
    if known is not None and (known.digest, known.decoder) == (digest, version("pillow")):
        return known
    found = _scanned(folder, digests, digest, layout)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_name(f"{kept.name}.{os.getpid()}")
        partial.write_text(json.dumps(dataclasses.asdict(found)))
        partial.replace(kept)
    return found


@dataclass(kw_only=True, slots=True)
class Examined:
    """The finding about an image-folder all of whose images were decoded."""

    faults: list[str] = dataclasses.field(default_factory=list)
    """Faults, one line for each file that cannot be used."""
    near: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """Test images that look like a training image, with that one, as SPLIT/CLASS/FILE."""


def examine(folder: Path, size: int, layout: Layout) -> Examined:
    """Decode every image of a folder, and compare test images with training images.

    Args:
        folder: The folder.
        size: Side that the images will get, in pixels.
        layout: Which of its files are its images.
    """
    found = Examined()
    seen: dict[SplitName, dict[str, Any]] = {"train": {}, "test": {}}
    for split, thumbnails in seen.items():
        place = folder / layout.place(split)
        if split == "test" and not place.exists():
            continue
        kinds = sorted(p for p in place.glob("*") if p.is_dir() and not p.name.startswith("."))
        try:
            classes = class_files(folder, split, layout)
        except DataError as error:
            found.faults.append(str(error))
            files = [f for kind in kinds for f in sorted(kind.glob("*")) if f.suffix]
        else:
            files = [file for of_class in classes.values() for file in of_class]
        for file in files:
            try:
                picture = rgb_picture(file, size, "white")
            except DataError as error:
                found.faults.append(str(error))
            else:
                thumbnails[file.relative_to(folder).as_posix()] = grey_thumbnail(picture)
    found.faults = list(dict.fromkeys(found.faults))
    held_out, trained = (list(thumbnails) for thumbnails in (seen["test"], seen["train"]))
    pairs = near_copies(list(seen["test"].values()), list(seen["train"].values()))
    found.near = [(held_out[one], trained[other]) for one, other in pairs]
    return found


def _scanned(
    folder: Path, digests: Mapping[bytes, str], digest: str, layout: Layout
) -> FolderFacts:
    of_train = class_files(folder, "train", layout)
    splits: dict[str, Mapping[str, Sequence[Path]]] = {"train": of_train}
    if (folder / layout.test_folder).exists():
        with suppress(DataError):  # what does not use its test images does not look at them
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
                text = str(error).removeprefix(f"{printable(str(file))}: ")
                unreadable[name] = text
    trained = [name for name in digests if name.startswith(b"train/")]
    counts = Counter(digests[name] for name in trained)
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
        copies={
            os.fsdecode(name).removeprefix("train/"): digests[name]
            for name in sorted(trained)
            if counts[digests[name]] > 1
        },
        transparent=tuple(transparent),
        unreadable=unreadable,
        decoder=version("pillow"),
    )
