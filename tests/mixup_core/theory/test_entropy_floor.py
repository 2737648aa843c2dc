from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.theory.entropy_floor import EntropyFloorConfig, entropy_floor
from tests.mixup_core.theory.processes import last

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


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.2), Beta(alpha=32.0)])
def test_the_estimate_lies_within_five_standard_errors(law: Law) -> None:
    for seed in range(3):
        metrics = last(replace(CONFIG, law=law, seed=seed))
        assert metrics["floor/exact"] == entropy_floor(law, 10)
        assert metrics["floor/gap"] <= 5 * metrics["floor/standard_error"]
        assert metrics["floor/gap"] == abs(metrics["floor/estimate"] - metrics["floor/exact"])
