"""images_of_classes: counts the images of each class on which a run trains."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import DATASETS, DataError, DatasetInfo, SplitName
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.draws import Indices, draw_noise, draw_subset, split_off
from mixup_core.images.data.fetching import data_root, is_present, verify
from mixup_core.images.data.folders import split_classes
from mixup_core.images.image_data import described, facts_of
from mixup_core.seeding import Seeds


def images_of_classes(config: TrainConfig) -> Indices | None:
    """Count the training images of each class, before and after label noise: (2, classes).

    The result is None if the labels are not on this machine, or cannot be read without decoding
    images.
    """
    data, info = config.data, described(config.data)
    labels = _labels(data, data_root())
    return None if labels is None else _counts(data, info, labels, config.seeds)


_PICTURES = {"caltech101", "dtd", "fgvc-aircraft", "tiny-imagenet"}
"""Datasets whose labels can only be read together with their images, which takes minutes."""


def _labels(data: DataConfig, root: Path) -> Indices | None:
    """Return the labels of all training images, followed by test labels if the run is an oracle."""
    if (facts := facts_of(data)) is not None:
        train, test = (
            [len(files) for files in of_classes.values()]
            for of_classes in split_classes(data, facts.train, facts.test)
        )
        of_train = np.repeat(np.arange(len(train)), train)
        of_test = np.repeat(np.arange(len(test)), test)
    elif data.name in _PICTURES or data.name == "image-folder" or not is_present(data.name, root):
        return None
    else:
        try:
            of_train = _published_labels(data.name, "train", root)
            of_test = _published_labels(data.name, "test", root) if data.oracle else of_train[:0]
        except (DataError, OSError):
            return None  # loading the images raises the same error
    kept, _ = split_off(len(of_train), data)
    return np.concatenate([of_train[kept], of_test if data.oracle else of_test[:0]])


@lru_cache(maxsize=8)
def _published_labels(name: str, split: SplitName, root: Path) -> Indices:
    if (read := DATASETS[name].labels) is not None:
        if DATASETS[name].files:
            verify(name, root, split)
        return read(root, split)
    from mixup_core.images.data.datasets import read_split  # loads torch

    labels: Indices = read_split(DataConfig(name=name), root, split).labels.numpy()
    return labels


def _counts(data: DataConfig, info: DatasetInfo, labels: Indices, seed: int | Seeds) -> Indices:
    chosen = draw_subset(labels, info.num_classes, data, seed)
    own = labels if chosen is None else labels[chosen]
    noisy = draw_noise(own, info.num_classes, data, seed)
    return np.stack([np.bincount(part, minlength=info.num_classes) for part in (own, noisy)])
