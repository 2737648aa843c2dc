"""Mapped: a dataset decoded once per machine, in a file that all its processes map into memory.

    decoded/<name>-<16 hex>-<64 hex>.pt    tensors of every split
    .decoded-<uid>.key                     32 random bytes that only this user can read

The 16 digits are a hash of everything that the tensors depend on: checksums of the source files,
configuration, decoders, user. If a source file changes, the dataset is decoded into another file.
The 64 digits are a signature (HMAC-SHA256) of name and content with the user's key. If a file is
damaged, modified or written by another user, its signature is wrong and the dataset is decoded
again. The folder `decoded` and the key may be deleted at any time.
"""

import dataclasses
import functools
import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import torch

from mixup_core.archives import require_unpacked
from mixup_core.config.catalogue import Origin
from mixup_core.images.data.catalog import PUBLISHED, DataError
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images, Splits, load
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, locked
from mixup_core.images.data.folders import describe
from mixup_core.images.data.pictures import picture_reader
from mixup_core.keys import NUMERICS_VERSION
from mixup_core.store.errors import StoreError
from mixup_core.store.local_files import open_regular, write_durably

_FOLDER = "decoded"
_DIGITS = 16
_KEY_BYTES = 32
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
        secret = _secret(root)
        splits = _read(data, key, root, secret)
        if splits is not None:
            return splits
        with locked(data.name, root):
            if (splits := _read(data, key, root, secret)) is not None:
                return splits
            loaded = load(data, root)
            _write(loaded, key, root, secret)
            return _read(data, key, root, secret) or loaded
    except (OSError, StoreError):
        return load(data, root)


def load_once(data: DataConfig, root: Path | None = None) -> Splits:
    """Load a dataset's images, by split, as `load_mapped` does; download them first if missing.

    A process keeps the two datasets that it loaded last, for its next runs, and does not load them
    again. If several processes of a machine need the download, one makes it and the others wait.
    """
    return _kept(data.as_loaded(), root, PUBLISHED.origins.get(data.name))


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
        "user": os.geteuid(),
        "decoders": {package: version(package) for package in _DECODERS},
    }
    if data.name == "image-folder":
        made_from["pictures"] = picture_reader()
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return f"{data.name}-{digest[:_DIGITS]}"


def _secret(root: Path) -> bytes:
    """Return the key with which this user's decoded files are signed; create it if it is missing.

    Raises:
        OSError: If the key cannot be written, or another user's file is in its place.
    """
    file = root / f".decoded-{os.geteuid()}.key"
    for _ in ("read", "made by another process or by this one"):
        with suppress(FileNotFoundError), open_regular(file) as stream:
            found = os.fstat(stream.fileno())
            content = stream.read(_KEY_BYTES + 1)
            is_private = found.st_uid == os.geteuid() and not found.st_mode & 0o077
            if is_private and len(content) == _KEY_BYTES:
                return content
            file.unlink()
        write_durably(file, secrets.token_bytes(_KEY_BYTES), overwrite=False)
    raise OSError(
        f"{file}: cannot sign decoded images with it: it must have {_KEY_BYTES} bytes that only "
        "this user can read; remove it, and a new one is made"
    )


def _read(data: DataConfig, key: str, root: Path, secret: bytes) -> Splits | None:
    for file in (root / _FOLDER).glob(f"{key}-*.pt"):
        name = f"{key}-{_signature(file, key, secret)}" if file.is_file() else ""
        if hmac.compare_digest(file.stem.encode(), name.encode()):
            with file.open("rb") as stream:
                require_unpacked(stream)
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


def _write(splits: Splits, key: str, root: Path, secret: bytes) -> None:
    """Write the decoded splits to their file, atomically. The caller holds the lock."""
    images = {"train": splits.train, "val": splits.val, "test": splits.test, **splits.corrupted}
    parts = {
        name: {"pixels": part.pixels, "labels": part.labels}
        for name, part in images.items()
        if part is not None
    }
    partial = root / _FOLDER / f"{key}.partial"
    partial.parent.mkdir(exist_ok=True)
    # This process has the lock, so that other partial files are those of killed processes.
    for left in partial.parent.glob(f"{key[:-_DIGITS]}{'[0-9a-f]' * _DIGITS}.partial"):
        with suppress(IsADirectoryError):
            left.unlink()
    try:
        try:
            torch.save(parts, partial)
        except RuntimeError as error:  # raised by PyTorch's own writer if the disk is full
            raise OSError(f"{partial}: {error}") from error
        partial.replace(partial.with_name(f"{key}-{_signature(partial, key, secret)}.pt"))
    finally:
        partial.unlink(missing_ok=True)


def _signature(file: Path, key: str, secret: bytes) -> str:
    with file.open("rb") as stream:
        new = functools.partial(hmac.new, secret, key.encode(), "sha256")
        return hashlib.file_digest(stream, new).hexdigest()
