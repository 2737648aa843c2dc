"""Assignment: a run for a worker to train, with all settings that training it needs."""

import os
from dataclasses import dataclass
from typing import Any, Self

from mixup_core.addresses import local_path
from mixup_core.problem import Config
from mixup_core.store.checkpoints import Store
from sweeps.state.stages import PlannedRun


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A run for a worker to train, with all settings that training it needs."""

    config: Config
    keep: frozenset[int]
    """Epochs, counted from 1, after which the state is kept because other runs need it."""
    keep_final_state: bool
    """True to keep the state after the last epoch, so that a longer run can continue from it."""
    store: str
    teacher: Config | None
    """Configuration of the teacher, whose final state is in the store; None for runs without a
    teacher."""
    data_root: str | None
    """Folder of the datasets on every node; None for the default folder of each node."""
    on_gpu: bool
    gpus: float = 0.0
    """Number of GPUs reserved for the run."""
    report_every: float = 1.0
    """Seconds between two reports to the driver. Epochs that other runs wait for are reported at
    once."""
    spare_bytes: int = 0
    """Largest final state, in bytes, that is kept although no run needs it yet. A longer run may
    continue from it."""

    @classmethod
    def of(cls, planned: PlannedRun, store: Store, **given: Any) -> Self:
        """Return an assignment for a worker: a planned run to train, with all its settings.

        The data folder is the one set for this process by `MIXSWEEP_DATA`, if any.

        Args:
            planned: The run.
            store: The store to write results to.
            given: Values of the other fields of the assignment, by name, such as `gpus`.
        """
        own_data = os.environ.get("MIXSWEEP_DATA")
        return cls(
            config=planned.run.config,
            keep=planned.keep,
            store=store.url,
            teacher=planned.run.teacher,
            data_root=str(local_path(own_data).absolute()) if own_data else None,
            **given,
        )
