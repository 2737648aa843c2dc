"""Trial runs: runs of a few epochs on tiny made-up images, which check plugins.

These runs are not trials of Ray Tune.
"""

import time
from collections.abc import Mapping
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import torch

from mixup_core.config.building import built
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.data.pixels import Images
from mixup_core.images.objectives.guided import Guided
from mixup_core.images.training import TrainingState, fit
from mixup_core.problem import Teacher
from mixup_core.records import EpochRecord

_EPOCHS = 3
BASE: Mapping[str, Any] = {
    "data.name": "digits", "model": {"name": "mlp", "hidden": [8, 8]}, "mix.law": {"beta": 1.0},
    "optimizer": {"name": "sgd", "lr": 0.05}, "epochs": _EPOCHS, "batch_size": 16,
}  # fmt: skip
"""Configuration of a trial run without a plugin: values, as in study files, by dotted path."""
INFO = DatasetInfo(
    title="made up", num_train=64, num_test=32, num_classes=4, channels=1, image_size=16,
    mean=(0.25,), std=(0.2,), smallest_class=16,
)  # fmt: skip
"""Sizes, number of classes and pixel statistics of the made-up images."""


def followed(config: TrainConfig) -> list[tuple[bytes, EpochRecord, object]]:
    """Train a configuration on made-up images; return (state, record, logits) of each epoch.

    `trained` returns no logits, but can use other images and resume a run.
    """
    state = TrainingState.initial(config, INFO, torch.device("cpu"))
    teacher = made_up_teacher() if isinstance(config.objective, Guided) else None
    return [
        (
            state.to_bytes(),
            record,
            [t.tolist() for of in state.logits.values() for t in of.values()],
        )
        for record in fit(config, made_up_images(), state, teacher=teacher)
    ]


def seconds_per_epoch(config: TrainConfig) -> float:
    """Train a configuration on made-up images; return the median seconds of an epoch."""
    splits, times = made_up_images(), []
    started = time.perf_counter()
    teacher = made_up_teacher() if isinstance(config.objective, Guided) else None
    for _ in fit(config, splits, teacher=teacher):
        times.append(time.perf_counter() - started)
        started = time.perf_counter()
    return median(times)


def trained(
    config: TrainConfig, *, splits: Splits | None = None, resume: TrainingState | None = None
) -> list[tuple[bytes, list[EpochRecord]]]:
    """Train a configuration; return (state after the epoch, records so far) for each epoch.

    Args:
        config: The configuration.
        splits: Images to train and evaluate on; None: those of `made_up_images`.
        resume: State of a stopped run that continues; None: a run begins.
    """
    state = resume or TrainingState.initial(config, INFO, torch.device("cpu"))
    teacher = made_up_teacher() if isinstance(config.objective, Guided) else None
    records = fit(config, splits or made_up_images(), state, teacher=teacher)
    return [(state.to_bytes(), list(state.records)) for _ in records]


@cache
def made_up_teacher() -> Teacher:
    """Return a finished run on made-up images, as the teacher of runs whose objective needs one."""
    config = built(TrainConfig, BASE)
    state = TrainingState.initial(config, INFO, torch.device("cpu"))
    for _ in fit(config, made_up_images(), state):
        pass
    return Teacher(config=config, state=state.to_bytes())


def made_up_images(*, noise: bool = False) -> Splits:
    """Return made-up training and test images in which the position of a bright pixel is the class.

    Args:
        noise: True: the test images are noise.
    """

    def split(count: int, seed: int, blank: bool) -> Images:
        rng, labels = np.random.default_rng(seed), np.arange(count) % INFO.num_classes
        pixels = rng.integers(0, 128, (count, 1, 16, 16), dtype=np.uint8)
        if not blank:
            pixels[np.arange(count), 0, labels, labels] = 255
        return Images.of_arrays(pixels, labels)

    return Splits(
        info=INFO,
        train=split(INFO.num_train, 0, blank=False),
        val=None,
        test=split(INFO.num_test, 2 if noise else 1, blank=noise),
    )
