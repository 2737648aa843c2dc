"""Runs with teachers: how a run names its teacher, and its final predictions."""

import torch

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.training import TrainingState, fit
from mixup_core.problem import Teacher
from mixup_core.records import EpochRecord

CPU = torch.device("cpu")
NAMED = {"filter": {"teacher": "mixup", "teacher_key": "0" * 32}}


def trained(
    config: TrainConfig, splits: Splits, teacher: Teacher | None = None
) -> tuple[list[EpochRecord], bytes]:
    state = TrainingState.initial(config, splits.info, CPU)
    return list(fit(config, splits, state, teacher=teacher)), state.to_bytes()
