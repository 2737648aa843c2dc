"""Synthetic predictions: logits of networks with a given accuracy."""

import numpy as np

from mixup_core.predictions import Predictions, Split, images_digest
from mixup_core.records import AVERAGED
from reports.numbers.predicted import ReadPredictions
from sweeps.state.results import RunResult

NUM_IMAGES, NUM_CLASSES = 600, 4
SHARPNESS = {"erm": 4.0, "midpoint": 1.0, "uniform": 2.0}


def split_of(arm: str, seed: int, *, shift: int = 0, size: int = NUM_IMAGES) -> Split:
    """Return logits that favour the label, and sometimes another class."""
    truth = np.random.default_rng(shift)
    labels = truth.integers(NUM_CLASSES, size=size)
    rng = np.random.default_rng([seed, len(arm), shift])
    means = np.eye(NUM_CLASSES)[labels] + 0.6 * truth.normal(size=(size, NUM_CLASSES))
    logits = SHARPNESS.get(arm, 1.0) * (means + 0.5 * rng.normal(size=means.shape))
    return Split(
        labels=labels,
        images=images_digest(np.full((size, 1, 1, 1), shift, np.uint8), labels),
        logits={
            "": logits.astype(np.float32),
            AVERAGED: (logits / 2).astype(np.float32),
        },
    )


def reader(*, has_val: bool = True) -> ReadPredictions:
    """Return a function that reads predictions of every run."""

    def read(result: RunResult) -> Predictions:
        run = result.run
        splits = {"test": split_of(run.arm, run.seed)}
        if has_val:
            splits["val"] = split_of(run.arm, run.seed, shift=1, size=900)
        return Predictions(splits=splits)

    return lambda results: list(map(read, results))
