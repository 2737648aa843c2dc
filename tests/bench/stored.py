"""Stores filled with made-up stages, for measuring commands that only read; made-up metrics."""

import random

from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from sweeps.study.study import Study
from tests.filled import put


def fill(store: Store, study: Study) -> None:
    """Store a finished stage for every run of a study, with random numbers by seed and epoch."""
    for run in study.runs():
        rng = random.Random(run.key)
        records = [
            EpochRecord(epoch=epoch, metrics=made_up_metrics(rng, run.config, epoch))
            for epoch in range(run.config.epochs)
        ]
        put(store, run, records, environment={"device": "cpu", "torch": "none"})


def made_up_metrics(rng: random.Random, config: object, epoch: int) -> dict[str, float]:
    """Return random numbers under the names of the metrics that a run of images records."""
    names = ["train/loss", "train/excess_loss"]
    if (epoch + 1) % getattr(config, "eval_every", 1) == 0:
        names += ["test/error", "test/nll", "test/calibration_error"]
    return {name: rng.random() for name in names}
