"""Mapped: a dataset decoded once per machine, in a file that all its processes map into memory.

    decoded-<uid>/<name>-<16 hex>-<64 hex>.pt    tensors of every split

The 16 digits are a hash of everything that the tensors depend on: checksums of the source files,
configuration, decoders. If a source file changes, the dataset is decoded into another file. The 64
digits are the sha256 of the file; a damaged file is decoded again. Only its user can write to the
folder, which may be deleted at any time.
"""

import dataclasses
import functools
import hashlib
import json
import os
import stat
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import torch

from mixup_core.config.catalogue import Origin
from mixup_core.images.data.catalog import DATASETS, DataError
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images, Splits, load
from mixup_core.images.data.digests import file_digest
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, locked
from mixup_core.images.data.folders import describe
from mixup_core.images.data.pictures import picture_reader
from mixup_core.keys import NUMERICS_VERSION
from mixup_core.store.errors import StoreError
from mixup_core.store.local_files import sync

_DIGITS = 16
_DECODERS = ("numpy", "pillow", "torch", "torchvision")


def load_mapped(data: DataConfig, root: Path | None = None) -> Splits:
    """Load the images of a dataset, by split, into memory that this machine's processes share.

    The first process decodes the files; the others wait for it. A process that writes to the
    tensors changes only its own copy. If the folder `root` cannot be written, each process
    decodes for itself.
    """
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
    """Load a dataset's images, by split, as `load_mapped` does; download them first if missing.

    A process keeps the two datasets that it loaded last, for its next runs, and does not load them
    again. If several processes of a machine need the download, one makes it and the others wait.
    """
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
            splits = Splits(
                info=describe(data),
                train=images.pop("train"),
                val=images.pop("val", None),
                test=images.pop("test", None),
                corrupted=images,
            )
            return splits.normalised(data)
        with suppress(IsADirectoryError):
            file.unlink(missing_ok=True)
    return None


def _write(splits: Splits, key: str, folder: Path) -> None:
    """Write the decoded splits to their file, atomically. The caller holds the lock."""
    images = {"train": splits.train, "val": splits.val, "test": splits.test, **splits.corrupted}
    parts = {
        name: {"pixels": part.pixels, "labels": part.labels}
        for name, part in images.items()
        if part is not None
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
