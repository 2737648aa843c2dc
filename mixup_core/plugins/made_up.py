"""Made-up images and runs on them, with which the models, laws, ... of a plugin are checked."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from mixup_core.config.building import built
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.facts import DatasetInfo, Images
from mixup_core.images.objectives.objective import Guided
from mixup_core.images.training import Training
from mixup_core.images.training_state import TrainingState
from mixup_core.problem import Teacher

BASE: Mapping[str, Any] = {
    "data.name": "digits", "model": {"name": "mlp", "hidden": [8, 8]}, "mix.law": {"beta": 1.0},
    "optimizer": {"name": "sgd", "lr": 0.05}, "epochs": 3, "batch_size": 16,
}  # fmt: skip
"""Configuration of a trial run without a plugin: values, as in study files, by dotted path."""
INFO = DatasetInfo(
    title="made up", num_train=64, num_test=32, num_classes=4, channels=1, image_size=16,
    mean=(0.25,), std=(0.2,), smallest_class=16,
)  # fmt: skip
"""Sizes, number of classes and pixel statistics of the made-up images."""


def start(config: TrainConfig) -> Training:
    """Start a run on made-up images; on a made-up teacher if the objective needs one."""
    device, splits = torch.device("cpu"), _made_up()
    return Training(
        config=config,
        data=splits if config.data.test else replace(splits, test=None),
        device=device,
        state=TrainingState.initial(config, INFO, device),
        teacher=made_up_teacher() if isinstance(config.objective, Guided) else None,
    )


@cache
def made_up_teacher() -> Teacher:
    """Return a finished run on made-up images, as the teacher of runs whose objective needs one."""
    run = start(built(TrainConfig, BASE))
    for _ in run:
        pass
    return Teacher(config=run.config, state=run.to_bytes())


def _made_up() -> Splits:
    """Return made-up images in which the position of a bright pixel is the class."""

    def split(count: int, seed: int) -> Images:
        rng, labels = np.random.default_rng(seed), np.arange(count) % INFO.num_classes
        pixels = rng.integers(0, 128, (count, 1, 16, 16), dtype=np.uint8)
        pixels[np.arange(count), 0, labels, labels] = 255
        return Images.of_arrays(pixels, labels)

    train, test = split(INFO.num_train, 0), split(INFO.num_test, 1)
    return Splits(info=INFO, train=train, val=None, test=test)
