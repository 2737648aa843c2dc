"""Draws: wrong labels depend on the seed, and have the given fraction."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

from mixup_core.config.building import with_values
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.draws import draw_noise


def noisy(labels: np.ndarray, seed: int, **noise: object) -> np.ndarray:
    return draw_noise(labels, 10, DataConfig(**noise), seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_label_noise_replaces_its_share_of_labels_by_uniform_other_classes(rate: float) -> None:
    labels = np.tile(np.arange(10), 2000)
    drawn = noisy(labels, 3, label_noise=rate)
    is_wrong = drawn != labels
    assert is_wrong.mean() == pytest.approx(rate, abs=0.015)
    steps = np.bincount((drawn - labels)[is_wrong] % 10, minlength=10)
    assert steps[0] == 0
    assert scipy.stats.chisquare(steps[1:]).pvalue > 1e-3
    assert np.array_equal(drawn, noisy(labels, 3, label_noise=rate))
    assert not np.array_equal(drawn, noisy(labels, 4, label_noise=rate))
    assert noisy(labels, 3, label_noise=0.0) is labels


@pytest.mark.parametrize("to", ["any", "one"])
def test_a_higher_noise_rate_keeps_the_wrong_labels_of_a_lower_rate(to: str) -> None:
    labels = np.tile(np.arange(10), 100)
    less, more = (noisy(labels, 0, label_noise=rate, noise_to=to) for rate in (0.2, 0.4))
    assert np.array_equal(more[less != labels], less[less != labels])


def test_noise_to_one_class_uses_the_same_class_pairs_at_every_seed() -> None:
    labels = np.tile(np.arange(10), 2000)
    found = set()
    for seed in (3, 4):
        drawn = noisy(labels, seed, label_noise=0.2, noise_to="one")
        is_wrong = drawn != labels
        assert is_wrong.mean() == pytest.approx(0.2, abs=0.015)
        found.add(frozenset(zip(labels[is_wrong].tolist(), drawn[is_wrong].tolist(), strict=True)))
    assert len(found) == 1
    assert len(found.pop()) == 10


@pytest.mark.parametrize(("split", "other"), [("val", "test"), ("test", "val")])
def test_noise_in_one_held_out_split_leaves_the_other_unchanged(split: str, other: str) -> None:
    data = DataConfig(name="digits", val_size=200, label_noise=0.5, noise_to="one")
    splits, data = load(data), replace(data, noise_in_val=split == "test")
    clean, noisy, again = (
        splits.held_out(with_values(data, {f"noise_in_{split}": is_noisy}))
        for is_noisy in (False, True, True)
    )
    assert torch.equal(clean[other].labels, noisy[other].labels)
    assert torch.equal(clean[split].pixels, noisy[split].pixels)
    assert torch.equal(noisy[split].labels, again[split].labels)
    is_wrong = clean[split].labels != noisy[split].labels
    assert float(is_wrong.double().mean()) == pytest.approx(0.5, abs=0.15)
    moves = zip(clean[split].labels[is_wrong], noisy[split].labels[is_wrong], strict=True)
    assert len({(int(before), int(after)) for before, after in moves}) <= 10
