"""Stores filled with made-up stages, for measuring commands that only read; made-up metrics."""

import random

from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.study.study import Run, Study

_STORED_AT_MS = 1_700_000_000_000


def fill(store: Store, study: Study) -> None:
    """Store a finished stage for every run of a study, with random numbers by seed and epoch."""
    for run in study.runs():
        fill_run(store, run)


def fill_run(store: Store, run: Run) -> None:
    """Store a finished stage for one run."""
    rng, epochs = random.Random(run.key), run.config.epochs
    store.write(
        stage_keys(run.config)[-1],
        records=[
            EpochRecord(epoch=epoch, metrics=made_up_metrics(rng, run.config, epoch))
            for epoch in range(epochs)
        ],
        facts=[
            EpochFacts(seconds=1.0, stored_at_ms=_STORED_AT_MS + epoch) for epoch in range(epochs)
        ],
        environment={"device": "cpu", "torch": "none"},
        state=None,
    )


def made_up_metrics(rng: random.Random, config: object, epoch: int) -> dict[str, float]:
    """Return random numbers under the names of the metrics that a run of images records."""
    names = ["train/loss", "train/excess_loss"]
    if (epoch + 1) % getattr(config, "eval_every", 1) == 0:
        names += ["test/error", "test/nll", "test/calibration_error"]
    return {name: rng.random() for name in names}
