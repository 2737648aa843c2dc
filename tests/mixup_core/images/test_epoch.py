"""An epoch is one value: what training receives is what its key hashes."""

from dataclasses import fields, replace
from typing import Any

import pytest

from mixup_core.images.config import TrainConfig
from mixup_core.images.epoch import Epoch
from mixup_core.images.objectives.reg_mixup import RegMixup
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.tree.building import with_values

CHANGED: dict[str, Any] = {
    "law": Midpoint(),
    "lam_scope": "sample",
    "partner": "permutation",
    "objective": RegMixup(),
    "rate": 0.5,
}


@pytest.mark.parametrize("name", [part.name for part in fields(Epoch)])
def test_every_field_of_a_mixed_epoch_enters_its_key(name: str) -> None:
    usual = Epoch(law=Beta(alpha=1.0))
    assert replace(usual, **{name: CHANGED[name]}).key != usual.key


def test_an_epoch_without_mixing_is_the_same_however_others_mix() -> None:
    config = TrainConfig(epochs=2, batch_size=8)
    values = {"mix.law": "midpoint", "mix.switch_epoch": 1, "mix.lam_scope": "sample"}
    other = with_values(config, values | {"mix.partner": "permutation"})
    assert other.in_epoch(0) == Epoch(law=Midpoint(), lam_scope="sample", partner="permutation")
    assert other.in_epoch(1) == config.in_epoch(1) == Epoch(law=Erm())
    assert Epoch().key == "erm"
