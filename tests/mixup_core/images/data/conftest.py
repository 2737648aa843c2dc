"""Fixtures: a dataset with corrupted test images."""

from pathlib import Path

import pytest

from tests.mixup_core.images.data.small_cifar import write_cifar10, write_cifar10_c


@pytest.fixture
def cifar_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_cifar10(tmp_path, monkeypatch)
    write_cifar10_c(tmp_path, num_test=4)
    return tmp_path
