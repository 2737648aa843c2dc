"""Settings of a run and of its epochs: what contradicts is refused, and a key hashes the rest."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from mixup_core.config.building import with_values
from mixup_core.images.augmentations.crop import Crop
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.epoch import Epoch
from mixup_core.images.losses import CrossEntropy, SquaredError
from mixup_core.laws import Midpoint
from mixup_core.mixing.cutmix import CutMix
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.partners import Similar

BASE = TrainConfig(epochs=4, batch_size=8)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"eval_every": 3}, "eval_every must divide epochs"),
        ({"mix.switch_epoch": 5}, r"mix\.switch_epoch <= epochs"),
        ({"mix.law_after": "midpoint"}, "law_after needs switch_epoch or switch_fraction"),
        ({"optimizer.momentum": 0.9}, "momentum needs optimizer.name to be sgd"),
        (
            {"data.balanced": True},
            "balanced takes as many images of each class: it needs num_train or train_fraction",
        ),
        ({"data.corruptions": ("fog",)}, "corruptions needs the dataset cifar10 or cifar100"),
        (
            {
                "data.name": "cifar10",
                "data.corruptions": ("fog",),
                "data.label_noise": 0.1,
                "data.noise_in_test": True,
            },
            "noise_in_test",
        ),
        ({"data.folder": "x"}, "folder needs `name: image-folder`"),
        ({"data.name": "image-folder"}, "`name: image-folder` needs `folder`"),
        ({"model.hidden": (300,)}, "hidden needs model.name to be mlp"),
        ({"data.folds": 3, "data.val_size": 5}, "must not both"),
        ({"data.folds": 3, "data.fold": 3}, "fold < folds"),
        ({"data.fold": 0}, "fold < folds"),
        ({"data.folds": 3, "vary": "order"}, r"data\.folds needs `vary: all`"),
        (
            {"data.pixel_mean": (0.1,), "data.normalise": "measured"},
            "pixel_mean and pixel_std need `normalise: given`",
        ),
        ({"data.pixel_std": (1e-300,)}, "1e-6 <= each of pixel_std"),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_their_rule(
    values: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ValueError, match=f"{rule}.*, got"):
        with_values(BASE, values)


def test_as_loaded_leaves_out_subset_and_augmentation() -> None:
    """The decoded images of a machine serve every subset and every augmentation."""
    data = DataConfig(
        name="cifar10", val_size=5, image_size=16, corruptions=("fog",), severity=2, views="concat",
        num_train=10, balanced=True, label_noise=0.2, augment=Crop(), pool=2, oracle=True,
    )  # fmt: skip
    assert data.as_loaded() == DataConfig(
        name="cifar10", val_size=5, image_size=16, corruptions=("fog",), severity=2, pool=2
    )
    assert DataConfig(train_fraction=0.5).as_loaded() == DataConfig()


@pytest.mark.parametrize(
    "values",
    [
        {"operation": CutMix()},
        {"second": Linear()},
        {"label_law": Midpoint()},
        {"partner": Similar()},
    ],
    ids=str,
)
def test_the_floor_is_unknown_beyond_linear_mixing_of_random_pairs(values: dict[str, Any]) -> None:
    labels = torch.arange(10)
    usual = Epoch(law=Midpoint())
    assert usual.floor(CrossEntropy(), labels, 5) == pytest.approx(0.9 * math.log(2))
    assert usual.floor(SquaredError(), labels, 5) == 0
    assert replace(usual, **values).floor(CrossEntropy(), labels, 5) is None


def test_the_floor_scales_with_the_probability_of_mixing() -> None:
    some = Epoch(law=Midpoint(), probability=0.25)
    assert some.floor(CrossEntropy(), torch.arange(10), 5) == pytest.approx(0.225 * math.log(2))
    assert Epoch().floor(CrossEntropy(), torch.arange(10), 5) == 0
