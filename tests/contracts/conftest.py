"""Fixtures: twenty made-up images of the size of `digits`, and a run on them."""

import pytest
import torch

from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.training import TrainingState, fit
from mixup_core.problem import Teacher
from tests.contracts.test_registries import SMALL, made_up


@pytest.fixture(scope="session")
def digits() -> Splits:
    return made_up(DATASETS["digits"].info, 20)


@pytest.fixture(scope="session")
def teacher(digits: Splits) -> Teacher:
    state = TrainingState.initial(SMALL, digits.info, torch.device("cpu"))
    list(fit(SMALL, digits, state))
    return Teacher(config=SMALL, state=state.to_bytes())
