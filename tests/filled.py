"""Stores with runs that were trained in this process, without Ray, or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import mixsweep
from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure
from sweeps.study.study import Run


def train_into(store: Path, runs: Iterable[Run]) -> None:
    """Train runs and store them as finished, without states and predictions."""
    for run in runs:
        put(Store(str(store)), run, list(mixsweep.train(run)))


def put_epochs(
    store: Store, run: Run, epochs: int, state: bytes | None = None, **environment: str
) -> str:
    """Store the first epochs of a run without training it, and return the key of the stage."""
    records = [EpochRecord(epoch=epoch, metrics={"test/error": 0.5}) for epoch in range(epochs)]
    return put(store, run, records, state, environment=environment)


def put(
    store: Store,
    run: Run,
    records: Sequence[EpochRecord],
    state: bytes | None = None,
    *,
    facts: Sequence[EpochFacts] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Store the first epochs of a run with these records, and return the key of the stage."""
    key = stage_keys(run.config)[len(records) - 1]
    facts = facts or [EpochFacts(seconds=1.0, stored_at_ms=1_700_000_000_000)] * len(records)
    store.write(key, records=records, facts=facts, environment=environment, state=state)
    return key


def fail(
    store: Store,
    run: Run,
    kind: Literal["diverged", "failed"] = "failed",
    message: str = "as told",
    epoch: int = 0,
) -> Failure:
    """Store that a run failed or diverged in an epoch."""
    failure = Failure(run_key=run.key, kind=kind, message=message, epoch=epoch, attempts=1)
    store.failures.write(failure)
    return failure
