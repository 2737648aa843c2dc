"""Fixtures: a run under mixup, runs that learn from it, and a dataset with corrupted images."""

from pathlib import Path

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.problem import Teacher
from tests.mixup_core.images.data.small_cifar import write_cifar10, write_cifar10_c
from tests.mixup_core.images.taught_runs import trained


@pytest.fixture
def mixed(config: TrainConfig) -> TrainConfig:
    return with_values(config, {"mix.law": {"beta": 1.0}, "mix.lam_scope": "sample"})


@pytest.fixture
def teacher(mixed: TrainConfig, splits: Splits) -> Teacher:
    _, state = trained(mixed, splits)
    return Teacher(config=mixed, state=state)


@pytest.fixture
def cifar_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_cifar10(tmp_path, monkeypatch)
    write_cifar10_c(tmp_path, num_test=4)
    return tmp_path
