"""Mixers: which operation mixes each batch, and with which weight."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from mixup_core.images.batches import Drawn, draw_mixing
from mixup_core.images.epoch import Epoch
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.mixing.cutmix import CutMix
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.manifold import Manifold

SIZES = [4] * 300 + [2]
NAMES = ("mixing", "choice", "operation", "second", "label")


def _streams(seed: int = 0) -> Mapping[str, np.random.Generator]:
    return {name: np.random.default_rng([seed, i]) for i, name in enumerate(NAMES)}


def _drawn(**values: Any) -> Drawn:
    return draw_mixing(Epoch(**values), SIZES, (8, 8), _streams())


def _by_batch(lam: torch.Tensor) -> list[list[float]]:
    return [part.tolist() for part in lam.split(4)]


def test_erm_batches_have_no_operation_and_weight_1() -> None:
    drawn = _drawn(law=Erm(), operation=CutMix())
    assert set(drawn.mixers) == {None}
    assert drawn.lam.tolist() == [1] * 1202
    assert drawn.label_lam is None


@pytest.mark.parametrize("scope", ["batch", "sample"])
def test_lam_scope_sets_one_weight_and_box_per_batch_or_per_image(scope: str) -> None:
    drawn = _drawn(law=Beta(alpha=1.0), operation=CutMix(), lam_scope=scope)
    rows = [len(mixer.drawn) for mixer in drawn.mixers if mixer is not None]
    assert rows == ([1] * 301 if scope == "batch" else SIZES)
    assert all((len(set(lam)) == 1) == (scope == "batch") for lam in _by_batch(drawn.lam))


@pytest.mark.parametrize("scope", ["batch", "sample"])
def test_a_share_of_the_batches_is_mixed_and_the_other_batches_have_weight_1(scope: str) -> None:
    drawn = _drawn(law=Midpoint(), probability=0.25, label_law=Midpoint(), lam_scope=scope)
    is_mixed = [mixer is not None for mixer in drawn.mixers]
    assert 50 < sum(is_mixed) < 100
    assert drawn.label_lam is not None
    for lam in (drawn.lam, drawn.label_lam):
        assert [set(part) for part in _by_batch(lam)] == [{0.5} if m else {1.0} for m in is_mixed]


@pytest.mark.parametrize("scope", ["batch", "sample"])
def test_batches_switch_between_two_operations_each_with_its_law(scope: str) -> None:
    """The rule of timm: each batch chooses at random; the second operation has its own alpha."""
    drawn = _drawn(
        law=Midpoint(),
        second=CutMix(),
        second_law=Beta(alpha=1.0),
        second_probability=0.3,
        lam_scope=scope,
    )
    kinds = [type(mixer.operation) for mixer in drawn.mixers if mixer is not None]
    assert len(kinds) == 301
    assert 65 < kinds.count(CutMix) < 120
    for kind, lam in zip(kinds, _by_batch(drawn.lam), strict=True):
        assert (set(lam) == {0.5}) == (kind is Linear)


def test_a_label_law_draws_separate_weights_for_labels() -> None:
    drawn = _drawn(law=Midpoint(), label_law=Beta(alpha=1.0))
    assert set(drawn.lam.tolist()) == {0.5}
    assert drawn.label_lam is not None
    assert len(drawn.label_lam.unique()) == 301


@pytest.mark.parametrize(
    "values",
    [{"operation": CutMix()}, {"second": CutMix()}, {"label_law": Midpoint()},
     {"probability": 0.99}],
    ids=str,
)  # fmt: skip
def test_mixing_options_do_not_change_the_weights_of_unaffected_batches(values: Any) -> None:
    usual, other = (_drawn(law=Beta(alpha=1.0), **more) for more in ({}, values))
    is_left = torch.tensor(
        [(m is not None and type(m.operation) is not CutMix) or "operation" in values
         for m in other.mixers]
    ).repeat_interleave(torch.tensor(SIZES))  # fmt: skip
    assert is_left.any()
    assert torch.equal(usual.lam[is_left], other.lam[is_left])


def test_hidden_layers_are_mixed_by_the_network() -> None:
    drawn = _drawn(law=Midpoint(), operation=Manifold(layers=(0, 2)))
    own, beside = torch.zeros(4, 1, 8, 8), torch.ones(4, 1, 8, 8)
    met = set()
    for mixer in drawn.mixers[:40]:
        assert mixer is not None
        images, weight, hidden = mixer.mix(own, beside, torch.full((4,), 0.5))
        assert weight.tolist() == [0.5] * 4
        met.add(None if hidden is None else hidden.layer)
        if hidden is None:
            assert set(images.flatten().tolist()) == {0.5}
        else:
            assert torch.equal(images, torch.cat([own, beside]))
    assert met == {None, 2}
