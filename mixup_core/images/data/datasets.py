"""Loading: `load` returns all splits of a run, `load_once` those that a machine shares.

    decoded-<uid>/<name>-<16 hex>-<64 hex>.pt    tensors of every split, mapped by all processes

The 16 digits are a hash of everything that the tensors depend on: checksums of the source files,
configuration, decoders. If a source file changes, the dataset is decoded into another file. The 64
digits are the sha256 of the file; a damaged file is decoded again. Only its user can write to the
folder, which may be deleted at any time.
"""

import dataclasses
import functools
import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Self

import torch

from mixup_core.config.catalogue import Origin
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.digests import file_digest
from mixup_core.images.data.draws import draw_held_out_noise, split_off
from mixup_core.images.data.facts import DataError, DatasetInfo, Images, SplitName, squared
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, locked, verify
from mixup_core.images.data.folders import (
    FileFault,
    FileFaultsError,
    Layout,
    class_files,
    describe,
    folder_digest,
    noting,
    split_classes,
)
from mixup_core.images.data.pictures import picture_reader, rgb_picture
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.data.sets.corrupted import CORRUPTED, read_corrupted
from mixup_core.keys import NUMERICS_VERSION
from mixup_core.seeding import watched
from mixup_core.store.errors import StoreError
from mixup_core.store.local_files import sync

__all__ = ["Images", "Splits", "load", "read_split"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Splits:
    """Images of a dataset by split, as loaded: before a subset is drawn and pixels normalised."""

    info: DatasetInfo
    train: Images
    """Training images without the held-out ones, in the order of the files."""
    val: Images | None
    """Images held out of the training images, the same at every seed (except with folds); None if
    none are held out.
    """
    test: Images | None
    """Test images; None if `data.test` is false."""
    corrupted: Mapping[str, Images] = field(default_factory=dict)
    """Test images under each corruption of `data.corruptions`, by name of the corruption."""

    @classmethod
    def of(cls, info: DatasetInfo, parts: dict[str, Images]) -> Self:
        """Return the splits, given `train`, `val`, `test` and the names of corruptions."""
        train, val, test = parts.pop("train"), parts.pop("val", None), parts.pop("test", None)
        return cls(info=info, train=train, val=val, test=test, corrupted=parts)

    def parts(self) -> dict[str, Images]:
        """Return the splits by name; the inverse of `of`."""
        named = {"train": self.train, "val": self.val, "test": self.test, **self.corrupted}
        return {name: images for name, images in named.items() if images is not None}

    def held_out(self, data: DataConfig) -> dict[str, Images]:
        """Return validation, test, corrupted images by metric prefix: `val`, `test`, `test_fog`."""
        splits = {}
        for name, images in self.parts().items():
            if name in {"val", "test"}:
                given = images.labels.numpy()
                noisy = draw_held_out_noise(given, self.info.num_classes, data, name)
                splits[name] = replace(images, labels=torch.from_numpy(noisy))
            elif name != "train":
                splits[f"test_{name}"] = images
        return splits

    def seen_by(self, data: DataConfig) -> Images:
        """Return the images that a run can train on; `data.oracle` adds the test images."""
        if not data.oracle:
            return self.train
        if self.test is None:
            raise ValueError(f"an oracle needs test images (data.test: true), got ({data=}).")
        pixels, labels = (
            torch.cat([getattr(part, name) for part in (self.train, self.test)])
            for name in ("pixels", "labels")
        )
        return replace(self.train, pixels=pixels, labels=labels, num_test=len(self.test))

    def prepared(self, data: DataConfig) -> Self:
        """Return the splits pooled, with mean and standard deviation of each channel in `info`."""
        parts = {name: images.pooled(data.pool) for name, images in self.parts().items()}
        info = self.info
        if data.normalise == "measured":
            mean, std = _measured(parts["train"])
            info = replace(info, mean=mean, std=std)
        return self.of(info, parts)


def _measured(images: Images) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel of pooled pixels, in [0, 1]."""
    scale = 255 * images.pool**2
    count = images.pixels[:, 0].numel()
    means, stds = [], []
    for channel in images.pixels.unbind(1):
        parts = [part.long() for part in torch.split(channel, _IMAGES_PER_SUM)]
        first = sum(int(part.sum()) for part in parts) / count  # sums of integers are exact
        second = sum(int(part.square().sum()) for part in parts) / count
        means.append(first / scale)
        stds.append(max(math.sqrt(max(0.0, second - first**2)) / scale, 1 / 255))
    return tuple(means), tuple(stds)


_IMAGES_PER_SUM = 1000


def load(data: DataConfig, root: Path | None = None) -> Splits:
    """Load a dataset from disk and check it. Nothing is downloaded.

    If `data.test` is false, test images are not decoded, so that no number can depend on them. Only
    the digest of an image-folder, which shows changes of its files, reads the bytes under `test/`.
    """
    root = data_root() if root is None else root
    info = describe(data)
    parts: dict[str, Images] = {}
    counts: dict[SplitName, int] = {"train": info.num_train, "test": info.num_test}
    for split, count in counts.items():
        if split == "train" or data.test:
            parts[split] = read_split(data, root, split)
            _check(parts[split], info, count, f"{data.name} {split}")
    for name in data.corruptions if data.test else ():
        of, severity = CORRUPTED[data.name], data.severity
        images = read_corrupted(root, of, name, severity, info.num_test)
        parts[name] = images.resized(info.image_size)
    if data.holds_out:
        train, chosen = parts["train"], map(torch.from_numpy, split_off(info.num_train, data))
        parts["train"], parts["val"] = (
            Images(pixels=train.pixels[part], labels=train.labels[part]) for part in chosen
        )
    return Splits.of(info, parts).prepared(data)


def read_split(data: DataConfig, root: Path, split: SplitName) -> Images:
    """Return the images of one split of a dataset, in the configured size."""
    if data.name == "image-folder":
        return _image_folder(data, root, split)
    dataset = DATASETS[data.name]
    if dataset.files:
        verify(dataset.name, root, split)
    size = data.image_size or dataset.info.image_size
    with watched(may_use_python=True) as drawn:
        images = dataset.read(root, split, size).resized(size)
    if drawn and (origin := DATASETS.origins.get(dataset.name)):
        raise DataError(
            f"plugin {origin.plugin}: reading the dataset {dataset.name} draws from the global "
            f"generator of {' and '.join(drawn)}, so that every reading gives other images; draw "
            "from numpy.random.default_rng(SEED)"
        )
    return images


def _image_folder(data: DataConfig, root: Path, split: SplitName) -> Images:
    """Decode a user's images to RGB: shorter side resized to `data.image_size`, centre-cropped."""
    (folder, size), layout = data.photos, Layout.of(data)
    is_named = split == "train" and data.digest is not None
    if is_named and folder_digest(folder, root, layout) != data.digest:
        raise DataError(
            f"{folder}: its images changed since the study was read; start the study again."
        )
    classes: Mapping[str, Sequence[Path]]
    if data.test_fraction is None:
        classes = class_files(folder, split, layout)
    else:
        both = split_classes(data, class_files(folder, "train", layout), {})
        classes = both[0 if split == "train" else 1]
    files = [(file, label) for label, of in enumerate(classes.values()) for file in of]
    pixels = torch.empty(len(files), 3, size, size, dtype=torch.uint8)
    faults: list[FileFault] = []
    for image, (file, _) in zip(pixels, files, strict=True):
        with noting(faults, file, folder):
            image.copy_(squared(rgb_picture(file, size, data.background), size))
    if faults:
        raise FileFaultsError(folder, faults)
    return Images(pixels=pixels, labels=torch.tensor([label for _, label in files]))


def _check(images: Images, info: DatasetInfo, num_images: int, where: str) -> None:
    labels, side = images.labels, info.image_size
    for part, tensor, shape, dtype in (
        ("images", images.pixels, (num_images, info.channels, side, side), torch.uint8),
        ("labels", labels, (num_images,), torch.int64),
    ):
        if tuple(tensor.shape) != shape or tensor.dtype != dtype:
            raise DataError(
                f"{where}: {part} must be {str(dtype).removeprefix('torch.')} of shape {shape}, "
                f"got {tensor.dtype} of shape {tuple(tensor.shape)}."
            )
    outside = ((labels < 0) | (labels >= info.num_classes)).nonzero()
    if len(outside):
        index = int(outside[0])
        raise DataError(
            f"{where}: labels must be in 0..{info.num_classes - 1}, got {int(labels[index])} at "
            f"index {index}."
        )
    counts = torch.bincount(labels, minlength=info.num_classes)
    if not counts.all():
        raise DataError(f"{where}: class {int(counts.argmin())} has no image.")


_DIGITS = 16
_DECODERS = ("numpy", "pillow", "torch", "torchvision")


def load_mapped(data: DataConfig, root: Path | None = None) -> Splits:
    """Load the images of a dataset, by split, into memory that this machine's processes share."""
    root = data_root() if root is None else root
    try:
        key = _key(data, root)
    except DataError:
        return load(data, root)  # raises an error with a full message
    try:
        folder = _private_folder(root)
        if (splits := _read(data, key, folder)) is not None:
            return splits
        with locked(data.name, root):
            if (splits := _read(data, key, folder)) is not None:
                return splits
            loaded = load(data, root)
            _write(loaded, key, folder)
            return _read(data, key, folder) or loaded
    except (OSError, StoreError):
        return load(data, root)


def load_once(data: DataConfig, root: Path | None = None) -> Splits:
    """Load a dataset's images, by split, as `load_mapped` does; download them first if missing."""
    return _kept(data.as_loaded(), root, DATASETS.origins.get(data.name))


@functools.lru_cache(maxsize=2)
def _kept(data: DataConfig, root: Path | None, origin: Origin | None) -> Splits:
    del origin  # another version of a plugin may read other images
    folder = data_root() if root is None else root
    if not is_present(data.name, folder):
        fetch(data.name, folder)
    return load_mapped(data, folder)


def _key(data: DataConfig, root: Path) -> str:
    """Return a digest of everything that the decoded tensors depend on."""
    seen = data.as_loaded()
    made_from = {
        "numerics": NUMERICS_VERSION,
        "data": dataclasses.asdict(seen) | {"folder": None},
        "sources": checksums(data, root),
        "decoders": {package: version(package) for package in _DECODERS},
    }
    if data.name == "image-folder":
        made_from["pictures"] = picture_reader()
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return f"{data.name}-{digest[:_DIGITS]}"


def _private_folder(root: Path) -> Path:
    """Return the folder of decoded files, to which only this user can write."""
    folder = root / f"decoded-{os.geteuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        raise OSError(f"{folder}: another user can change the images in it")
    return folder


def _read(data: DataConfig, key: str, folder: Path) -> Splits | None:
    for file in folder.glob(f"{key}-*.pt"):
        if file.is_file() and file.stem == f"{key}-{file_digest(file)}":
            parts = torch.load(file, mmap=True, weights_only=True)
            images = {name: Images(**part, pool=data.pool) for name, part in parts.items()}
            return Splits.of(describe(data), images).prepared(data)
        with suppress(IsADirectoryError):
            file.unlink(missing_ok=True)
    return None


def _write(splits: Splits, key: str, folder: Path) -> None:
    """Write the decoded splits to their file, atomically. The caller holds the lock."""
    parts = {
        name: {"pixels": part.pixels, "labels": part.labels}
        for name, part in splits.parts().items()
    }
    # This process has the lock, so that other partial files are those of killed processes.
    for left in folder.glob(f"{key[:-_DIGITS]}{'[0-9a-f]' * _DIGITS}.partial"):
        with suppress(IsADirectoryError):
            left.unlink()
    partial = folder / f"{key}.partial"
    try:
        try:
            torch.save(parts, partial)
        except RuntimeError as error:  # raised by PyTorch's own writer if the disk is full
            raise OSError(f"{partial}: {error}") from error
        sync(partial)
        partial.replace(folder / f"{key}-{file_digest(partial)}.pt")
    finally:
        partial.unlink(missing_ok=True)
