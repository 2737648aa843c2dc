"""Epoch: the value that training receives is the value that the key hashes."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.epoch import Epoch
from mixup_core.images.losses import CrossEntropy
from mixup_core.laws import Erm, Midpoint
from mixup_core.mixing.cutmix import CutMix
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.partners import FromBatch, Similar


def test_an_epoch_without_mixing_ignores_all_mixing_options() -> None:
    config = TrainConfig(epochs=2, batch_size=8)
    values = {"mix.law": "midpoint", "mix.switch_epoch": 1, "mix.lam_scope": "sample"}
    other = with_values(config, values | {"mix.partner": "permutation"})
    assert other.in_epoch(0) == Epoch(law=Midpoint(), lam_scope="sample", partner=FromBatch())
    assert other.in_epoch(1) == config.in_epoch(1) == Epoch(law=Erm())
    assert Epoch().key == "erm"


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
    assert replace(usual, **values).floor(CrossEntropy(), labels, 5) is None


def test_the_floor_scales_with_the_probability_of_mixing() -> None:
    some = Epoch(law=Midpoint(), probability=0.25)
    assert some.floor(CrossEntropy(), torch.arange(10), 5) == pytest.approx(0.225 * math.log(2))
    assert Epoch().floor(CrossEntropy(), torch.arange(10), 5) == 0
