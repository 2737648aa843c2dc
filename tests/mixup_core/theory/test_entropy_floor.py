from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from mixup_core.config.building import built
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.mixing.loss_floor import loss_floor
from mixup_core.rules import RuleError
from mixup_core.theory.entropy_floor import EntropyFloorConfig, entropy_floor
from tests.mixup_core.theory.processes import assert_resumes_anywhere, last

CONFIG = EntropyFloorConfig(law=Beta(alpha=1.0), draws=20_000)


@pytest.mark.parametrize(
    ("alpha", "floor"),
    [(0.2, 0.20489), (0.5, 0.34766), (1, 0.45), (2, 0.525), (8, 0.59658), (32, 0.61686)],
)
def test_the_floor_of_ten_classes_matches_lemma_1(alpha: float, floor: float) -> None:
    """Lemma 1 of arXiv:2303.01475: (k - 1) / k (psi(2 alpha + 1) - psi(alpha + 1))."""
    assert entropy_floor(Beta(alpha=alpha), 10) == pytest.approx(floor, abs=5e-6)


def test_the_floor_of_beta_tends_to_that_of_midpoint_and_the_floor_of_erm_is_0() -> None:
    assert entropy_floor(Beta(alpha=1e6), 10) == pytest.approx(entropy_floor(Midpoint(), 10), 1e-6)
    assert entropy_floor(Midpoint(), 10) == pytest.approx(0.9 * np.log(2))
    assert entropy_floor(Erm(), 10) == 0


@pytest.mark.parametrize("law", [Midpoint(), Beta(alpha=0.7)])
def test_the_floor_is_the_mean_entropy_of_all_pairs_of_a_balanced_set(law: Law) -> None:
    labels = np.repeat(np.eye(4), 3, axis=0)
    lams, entropies = law.nodes(5000)[:, None], []
    for own, partner in product(labels, labels):
        soft = lams * own + (1 - lams) * partner
        entropies.append(-np.sum(soft * np.log(np.clip(soft, 1e-300, 1))) / len(soft))
    assert entropy_floor(law, 4) == pytest.approx(np.mean(entropies), abs=1e-4)


def test_the_floor_equals_the_loss_floor_of_image_training() -> None:
    labels = torch.arange(5).repeat(7)
    expected = loss_floor(Beta(alpha=0.4), labels, "dataset", 5)
    assert entropy_floor(Beta(alpha=0.4), 5) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.2), Beta(alpha=32.0)])
def test_the_estimate_lies_within_five_standard_errors(law: Law) -> None:
    for seed in range(3):
        metrics = last(replace(CONFIG, law=law, seed=seed))
        assert metrics["floor/exact"] == entropy_floor(law, 10)
        assert metrics["floor/gap"] <= 5 * metrics["floor/standard_error"]
        assert metrics["floor/gap"] == abs(metrics["floor/estimate"] - metrics["floor/exact"])


def test_seeds_change_the_estimate_and_not_the_exact_floor() -> None:
    first, second = last(CONFIG), last(replace(CONFIG, seed=1))
    assert first["floor/estimate"] != second["floor/estimate"]
    assert first["floor/exact"] == second["floor/exact"]


def test_the_distance_to_a_target_is_recorded_only_when_a_target_is_set() -> None:
    assert "floor/distance" not in last(CONFIG)
    metrics = last(replace(CONFIG, target=0.25))
    assert metrics["floor/distance"] == metrics["floor/estimate"] - 0.25


def test_a_run_resumed_at_any_epoch_ends_with_the_same_bits() -> None:
    assert_resumes_anywhere(CONFIG)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"classes": 1}, "classes >= 2"),
        ({"draws": 1}, "2 <= draws"),
        ({"epochs": 2}, "epochs == 1"),
        ({"target": 1.5}, "0 <= target < 1"),
        ({"seed": -1}, "0 <= seed"),
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, object], rule: str) -> None:
    with pytest.raises(RuleError, match=rule):
        built(EntropyFloorConfig, values)
