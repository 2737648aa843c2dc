"""dataset_checks: the checks that a dataset of a plugin must pass."""

import torch

from mixup_core.global_generators import seeded_globally
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import Dataset
from mixup_core.images.data.fetching import data_root, is_present
from mixup_core.images.training import fit
from mixup_core.plugins.findings import BrokenError, Checks


def checks_of_dataset(config: TrainConfig) -> Checks:
    """Yield the checks of a plugin's dataset: pairs of a statement and a function that checks it.

    Args:
        config: Configuration of a run of one epoch on the dataset.
    """
    name = config.data.name
    if not is_present(name, data_root()):
        yield (
            "not checked, because the dataset is not on this machine; run mixsweep data fetch "
            f"{name} --plugin FILE, then check again",
            (lambda: None),
        )
        return
    yield "its images agree with `info`", lambda: _images(config)
    yield "reading it again gives the same images", lambda: _read_again(config)
    yield "a network trains on it", lambda: _trains(config)


def pixels_of(dataset: Dataset) -> bytes | None:
    """Return the pixels of a dataset's training images as bytes; None if the dataset is absent."""
    if not is_present(dataset.name, data_root()):
        return None
    return load(DataConfig(name=dataset.name)).train.pixels.numpy().tobytes()


def _images(config: TrainConfig) -> None:
    splits = load(config.data)
    fewest = int(torch.bincount(splits.train.labels).min())
    if fewest != splits.info.smallest_class:
        raise BrokenError(
            f"info.smallest_class is {splits.info.smallest_class}, but the smallest class has "
            f"{fewest} training images"
        )


def _read_again(config: TrainConfig) -> None:
    first = load(config.data)
    with seeded_globally(5):
        again = load(config.data)
    for split in ("train", "test"):
        one, other = getattr(first, split), getattr(again, split)
        if not (torch.equal(one.pixels, other.pixels) and torch.equal(one.labels, other.labels)):
            raise BrokenError(
                f"reading the dataset twice gives different {split} images or labels; draw random "
                "numbers only from a generator with a fixed seed"
            )


def _trains(config: TrainConfig) -> None:
    next(iter(fit(config, load(config.data))))
