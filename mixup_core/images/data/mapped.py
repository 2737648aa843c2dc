"""Mapped: a data set decoded once per machine, in a file that all its processes map.

    decoded/<name>-<16 hex>-<sha256>.pt    the tensors of every split; the file's own sha256

The 16 digits stand for all that the tensors are made from: the checksums of the source files, the
configuration, the decoders. A source that changed is therefore decoded into another file, and a
file that was damaged does not have the sha256 in its name. The folder may be removed at any time.
"""

import dataclasses
import functools
import hashlib
import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import torch

from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import DataError
from mixup_core.images.data.datasets import Images, Splits, load
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, locked
from mixup_core.images.data.folders import describe
from mixup_core.keys import NUMERICS_VERSION

_FOLDER = "decoded"
_DIGITS = 16
_DECODERS = ("numpy", "pillow", "torch", "torchvision")


def load_mapped(data: DataConfig, root: Path | None = None) -> Splits:
    """Load a data set as `load` does, in memory that the processes of this machine share.

    The first process decodes the files, others wait for it. A process that writes to the tensors
    changes its own copy. Where the root cannot be written, each process decodes for itself.

    Args:
        data: Which data set. What has an effect only later (`DataConfig.as_loaded`) has none here.
        root: Folder of the downloaded data sets; `data_root()` if None.

    Raises:
        DataError: If files are absent or damaged, or hold anything but what the catalogue says.
        ValueError: If validation would take every training image.
    """
    root = data_root() if root is None else root
    try:
        key = _key(data, root)
    except DataError:
        return load(data, root)  # which tells what is wrong
    try:
        splits = _read(data, key, root)
        if splits is not None:
            return splits
        with locked(data.name, root):
            if (splits := _read(data, key, root)) is not None:
                return splits
            loaded = load(data, root)
            _write(loaded, key, root)
            return _read(data, key, root) or loaded
    except OSError:
        return load(data, root)


def load_once(data: DataConfig, root: Path | None = None) -> Splits:
    """Load a data set as `load_mapped` does, fetched first if need be.

    The last two are kept at hand: a process hosts many runs in turn. Of the processes of a machine
    that lacks a data set one fetches it, the others wait.

    Args:
        data: Which data set. What has an effect only later (`DataConfig.as_loaded`) has none here.
        root: Folder of the downloaded data sets; `data_root()` if None.
    """
    return _kept(data.as_loaded(), root)


@functools.lru_cache(maxsize=2)
def _kept(data: DataConfig, root: Path | None) -> Splits:
    folder = data_root() if root is None else root
    if not is_present(data.name, folder):
        fetch(data.name, folder)
    return load_mapped(data, folder)


def _key(data: DataConfig, root: Path) -> str:
    """Return what stands for everything the tensors are made from."""
    seen = data.as_loaded()
    made_from = {
        "numerics": NUMERICS_VERSION,
        "data": dataclasses.asdict(seen) | {"folder": None},
        "sources": checksums(data, root),
        "decoders": {package: version(package) for package in _DECODERS},
    }
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return f"{data.name}-{digest[:_DIGITS]}"


def _read(data: DataConfig, key: str, root: Path) -> Splits | None:
    for file in (root / _FOLDER).glob(f"{key}-*.pt"):
        if file.is_file() and file.stem == f"{key}-{_sha256(file)}":
            parts = torch.load(file, mmap=True, weights_only=True)
            images = {name: Images(**part, pool=data.pool) for name, part in parts.items()}
            return Splits(
                info=describe(data),
                train=images.pop("train"),
                val=images.pop("val", None),
                test=images.pop("test", None),
                corrupted=images,
            )
        with suppress(IsADirectoryError):
            file.unlink(missing_ok=True)
    return None


def _write(splits: Splits, key: str, root: Path) -> None:
    """Write the file, under the lock; it appears whole.

    Raises:
        OSError: If the disk is full or fails.
    """
    images = {"train": splits.train, "val": splits.val, "test": splits.test, **splits.corrupted}
    parts = {
        name: {"pixels": part.pixels, "labels": part.labels}
        for name, part in images.items()
        if part is not None
    }
    partial = root / _FOLDER / f"{key}.partial"
    partial.parent.mkdir(exist_ok=True)
    # The lock is ours: whatever is there was left by killed processes, or is no file of ours.
    for left in partial.parent.glob(f"{key[:-_DIGITS]}{'[0-9a-f]' * _DIGITS}.partial"):
        with suppress(IsADirectoryError):
            left.unlink()
    try:
        try:
            torch.save(parts, partial)
        except RuntimeError as error:  # what PyTorch's own writer says of a full disk
            raise OSError(f"{partial}: {error}") from error
        partial.replace(partial.with_name(f"{key}-{_sha256(partial)}.pt"))
    finally:
        partial.unlink(missing_ok=True)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
