"""Stores with runs that were trained in this process, without Ray."""

from collections.abc import Iterable
from pathlib import Path

import mixsweep
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.study.study import Run


def train_into(store: Path, runs: Iterable[Run]) -> None:
    """Train runs and store them as finished, without states and predictions."""
    for run in runs:
        records = list(mixsweep.train(run))
        Store(str(store)).write(
            stage_keys(run.config)[-1],
            records=records,
            facts=[EpochFacts(seconds=1.0, stored_at_ms=1) for _ in records],
            environment={},
            state=None,
        )
