"""Resuming: a run gone on with from a store, in this process, as a trial does it."""

from functools import partial
from pathlib import Path

import torch

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.training import TrainingState
from sweeps.running.storing import Assignment, Storing


def resumed(config: TrainConfig, data: Splits, store: Path | str) -> tuple[Storing, TrainingState]:
    """Return a run's state after the deepest stage of it that is sound, and what stores the rest.

    It keeps its final state, and computes on the CPU.
    """
    assignment = Assignment(
        config=config,
        keep=frozenset(),
        keep_final_state=True,
        store=str(store),
        teacher=None,
        data_root=str(store),
        on_gpu=False,
    )
    storing = Storing(assignment, "cpu")
    initial = partial(TrainingState.initial, config, data.info, torch.device("cpu"))
    return storing, storing.resume(initial)
