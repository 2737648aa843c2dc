"""Datasets of a few images, in files of the original formats."""

import dataclasses
import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import SplitName
from mixup_core.images.data.fetching import files_of
from mixup_core.images.data.sets import DATASETS

NUM_TRAIN, NUM_TEST = 20, 10


def set_counts(monkeypatch: pytest.MonkeyPatch, name: str, **facts: Any) -> None:
    facts = {"num_train": NUM_TRAIN, "num_test": NUM_TEST, **facts}
    dataset = DATASETS[name]
    changed = dataclasses.replace(dataset, info=dataclasses.replace(dataset.info, **facts))
    monkeypatch.setitem(DATASETS._entries, name, changed)


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes in the format of the MNIST files."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


@dataclasses.dataclass
class FashionMnist:
    """A tiny Fashion-MNIST in which image i is filled with i and has label i modulo 10."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    def write(self, file: str, content: bytes) -> None:
        split: SplitName = "train" if file.startswith("train") else "test"
        path = f"FashionMNIST/raw/{file}"
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)
        pin = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.monkeypatch.setitem(files_of("fashion-mnist")[split], path, pin)

    def write_all(self) -> None:
        set_counts(self.monkeypatch, "fashion-mnist")
        for prefix, count in (("train", NUM_TRAIN), ("t10k", NUM_TEST)):
            images = np.broadcast_to(np.arange(count)[:, None, None], (count, 28, 28))
            self.write(f"{prefix}-images-idx3-ubyte", idx(images))
            self.write(f"{prefix}-labels-idx1-ubyte", idx(np.arange(count) % 10))


def write_images(folder: Path, split: str, **images: Image.Image) -> None:
    """Save each image as `split/<class>/0.png`; the keyword is the class."""
    for name, image in images.items():
        (folder / split / name).mkdir(parents=True, exist_ok=True)
        image.save(folder / split / name / "0.png")


def folder_config(folder: Path, **fields: Any) -> DataConfig:
    return DataConfig(name="image-folder", folder=str(folder), image_size=8, **fields)
