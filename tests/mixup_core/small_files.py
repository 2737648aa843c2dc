"""Datasets of a few images, in files of the original formats."""

import dataclasses
import hashlib
import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import DatasetInfo, Images
from mixup_core.images.data.fetching import files_of
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.image_data import ImageData

NUM_TRAIN, NUM_TEST = 20, 10


def noise_images(info: DatasetInfo, count: int) -> Images:
    """Return images of noise with the classes of a dataset in turn."""
    rng = torch.Generator().manual_seed(0)
    shape = (count, info.channels, info.image_size, info.image_size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng)
    return Images(pixels=pixels, labels=torch.arange(count) % info.num_classes)


def set_counts(monkeypatch: pytest.MonkeyPatch, name: str, **facts: Any) -> None:
    facts = {"num_train": NUM_TRAIN, "num_test": NUM_TEST, **facts}
    dataset = DATASETS[name]
    changed = dataclasses.replace(dataset, info=dataclasses.replace(dataset.info, **facts))
    monkeypatch.setitem(DATASETS._entries, name, changed)


def put(root: Path, path: str, content: bytes, name: str, patch: pytest.MonkeyPatch) -> str:
    """Write a file of a dataset and register its digest as the published one; return its MD5."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)
    for split in files_of(name).values():
        if path in split:
            algorithm, _, _ = split[path].partition(":")
            digest = hashlib.new(algorithm, content).hexdigest()
            patch.setitem(split, path, f"{algorithm}:{digest}")
    return hashlib.md5(content).hexdigest()


def tar(members: Mapping[str, bytes]) -> bytes:
    """Return a compressed archive of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes in the format of the MNIST files."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_idx(root: Path, name: str, folder: str, patch: pytest.MonkeyPatch) -> None:
    """Write a dataset in which image i is filled with i and has label i modulo 10."""
    set_counts(patch, name)
    for prefix, count in (("train", NUM_TRAIN), ("t10k", NUM_TEST)):
        images = np.broadcast_to(np.arange(count)[:, None, None], (count, 28, 28))
        put(root, f"{folder}/raw/{prefix}-images-idx3-ubyte", idx(images), name, patch)
        labels = idx(np.arange(count) % 10)
        put(root, f"{folder}/raw/{prefix}-labels-idx1-ubyte", labels, name, patch)


def write_images(folder: Path, split: str, **images: Image.Image) -> None:
    """Save each image as `split/<class>/0.png`; the keyword is the class."""
    for name, image in images.items():
        (folder / split / name).mkdir(parents=True, exist_ok=True)
        image.save(folder / split / name / "0.png")


def fill(folder: Path, first: int = 0, **numbers: int) -> None:
    """Save so many images of each class, the keyword; the red of all is `first` + 1, 2, ..."""
    for kind, number in numbers.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for index in range(number):
            first += 1
            Image.new("RGB", (8, 8), (first, 2 * first, 0)).save(folder / kind / f"{index}.png")


def folder_config(folder: Path, **fields: Any) -> DataConfig:
    return DataConfig(name="image-folder", folder=str(folder), image_size=8, **fields)


def prepared(folder: Path, **fields: Any) -> TrainConfig:
    """Return a run on an image folder, with the facts that reading a study adds."""
    config = TrainConfig(data=folder_config(folder, **fields), epochs=1, batch_size=2)
    return ImageData().prepare(config, folder)
