"""A tiny CIFAR-10 and its corrupted test images, in files of the original formats."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torchvision.datasets

from mixup_core.images.data.sets.corrupted import CORRUPTIONS
from tests.mixup_core.small_files import put, set_counts


def write_cifar10(
    root: Path, monkeypatch: pytest.MonkeyPatch, labels: tuple[int, ...] = (0, 1, 0, 1)
) -> None:
    """Write batches of four images.

    Image i of batch b has red b, green i, and the column as blue.
    """
    published = torchvision.datasets.CIFAR10
    names = [f"data_batch_{batch}" for batch in range(1, 6)] + ["test_batch"]
    set_counts(monkeypatch, "cifar10", num_test=4, num_classes=2)
    monkeypatch.setattr(published, "train_list", [])
    monkeypatch.setattr(published, "test_list", [])

    def write(name: str, content: Any) -> str:
        path = f"cifar-10-batches-py/{name}"
        return put(root, path, pickle.dumps(content), "cifar10", monkeypatch)

    for batch, name in enumerate(names, start=1):
        pixels = np.empty((4, 3, 32 * 32), dtype=np.uint8)
        pixels[:, 0], pixels[:, 1] = batch, np.arange(4)[:, None]
        pixels[:, 2] = np.tile(np.arange(32), 32)
        md5 = write(name, {"data": pixels.reshape(4, -1), "labels": list(labels)})
        (published.test_list if name == "test_batch" else published.train_list).append([name, md5])
    md5 = write("batches.meta", {"label_names": ["even", "odd"]})
    monkeypatch.setitem(published.meta, "md5", md5)


def write_cifar10_c(root: Path, num_test: int) -> None:
    """Write images whose red is the severity, green the number of the corruption, and blue i."""
    folder = root / "CIFAR-10-C"
    folder.mkdir(parents=True)
    for number, name in enumerate(CORRUPTIONS):
        pixels = np.empty((5 * num_test, 32, 32, 3), np.uint8)
        pixels[..., 0] = np.repeat(np.arange(1, 6), num_test)[:, None, None]
        pixels[..., 1] = number
        pixels[..., 2] = np.tile(np.arange(num_test), 5)[:, None, None]
        np.save(folder / f"{name}.npy", pixels)
    np.save(folder / "labels.npy", np.tile(np.arange(num_test) % 2, 5).astype(np.uint8))
