"""Stub: replaces the trainer in benches that measure only what surrounds it.

The driver is the real program. If the variable `ENVIRONMENT` is set, Ray loads the stub into the
processes that train.
"""

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixup_core.images.training import Training
from mixup_core.records import EpochRecord
from sweeps.running import attempt, storing
from tests.bench.stored import made_up_metrics

ENVIRONMENT: Mapping[str, str] = {
    "RAY_RUNTIME_ENV_HOOK": f"{__name__}.spread",
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    ),
}
"""Variable in the environment of the driver that activates the stub."""

CHATTY = "BENCH_EVERY_EPOCH"
"""Variable in the environment of the driver: `reported` or `stored`, what the stub does with every
epoch.
"""


def spread(runtime_env: dict[str, Any] | None) -> dict[str, Any]:
    """Return a Ray runtime environment whose processes call `install`; used by `ray.init`."""
    return {**(runtime_env or {}), "worker_process_setup_hook": f"{__name__}.install"}


def install() -> None:
    """Replace the trainer by the stub in this process."""
    Training.gradually = fit_at_once  # type: ignore[method-assign]
    if os.environ.get(CHATTY) == "stored":
        storing.STORE_AT_LEAST_EVERY = 0.0
    if CHATTY in os.environ:
        train = attempt.train
        attempt.train = lambda assignment, *others: train(
            replace(assignment, report_every=0.0), *others
        )


def fit_at_once(run: Training) -> Iterator[EpochRecord]:
    """Yield records as the trainer does, but at once and with random numbers by seed and epoch."""
    config = run.config
    for epoch in range(len(run.records), config.epochs):
        rng = random.Random(f"{config.seed} {epoch}")
        record = EpochRecord(epoch=epoch, metrics=made_up_metrics(rng, config, epoch))
        run.records.append(record)
        yield record
