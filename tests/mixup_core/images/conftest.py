"""Fixtures: a run under mixup, and runs that learn from it."""

import pytest

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.problem import Teacher
from mixup_core.tree.building import with_values
from tests.mixup_core.images.taught_runs import trained


@pytest.fixture
def mixed(config: TrainConfig) -> TrainConfig:
    return with_values(config, {"mix.law": {"beta": 1.0}, "mix.lam_scope": "sample"})


@pytest.fixture
def teacher(mixed: TrainConfig, splits: Splits) -> Teacher:
    _, state = trained(mixed, splits)
    return Teacher(config=mixed, state=state)
