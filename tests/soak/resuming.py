"""Resuming: a run is resumed from a store in this process, as a trial does it."""

from pathlib import Path

import torch

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.training import Training, TrainingState
from sweeps.running.assignment import Assignment
from sweeps.running.storing import Storing


def resumed(config: TrainConfig, data: Splits, store: Path | str) -> tuple[Storing, Training]:
    """Return a run that starts after its last intact stage, and the object that stores the rest.

    It keeps its final state, and computes on the CPU.
    """
    assignment = Assignment(
        config=config, keep_final_state=True, store=str(store), data_root=str(store)
    )
    storing = Storing(assignment, "cpu")
    device = torch.device("cpu")

    def begun() -> Training:
        state = TrainingState.initial(config, data.info, device)
        return Training(config=config, data=data, device=device, state=state)

    return storing, storing.resume(begun)
