from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import nquad

from mixup_core.config.building import built
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.theory.label_noise_bound import (
    LabelNoiseBoundConfig,
    disagreement,
)
from tests.mixup_core.theory.processes import finished, last

CONFIG = LabelNoiseBoundConfig(law=Beta(alpha=1.0), draws=50_000, epochs=3)


def test_disagreement_matches_the_sum_over_all_outcomes() -> None:
    own, mixed = np.array([0.3]), np.array([0.9])
    outcomes = [(a, b) for a in (0, 1) for b in (0, 1)]
    chance = sum(
        (own if a else 1 - own) * (mixed if b else 1 - mixed) for a, b in outcomes if a != b
    )
    assert disagreement(own, mixed, "sampled") == pytest.approx(chance)
    assert disagreement(own, mixed, "argmax") == pytest.approx(0.9)
    assert disagreement(1 - own, mixed, "argmax") == pytest.approx(0.1)
    assert disagreement(np.array([0.49]), mixed, "argmax") == pytest.approx(0.9)


@pytest.mark.long
@pytest.mark.slow
def test_mean_noise_matches_numerical_integration() -> None:
    def f(x: float) -> float:
        return 1 / (1 + np.exp(-0.75 * np.sin(2 * x)))

    def wrong(lam: float, x: float, y: float) -> float:
        own, mixed = f(lam * x + (1 - lam) * y), lam * f(x) + (1 - lam) * f(y)
        return float(own * (1 - mixed) + mixed * (1 - own)) / 16

    ranges = [(0, 1), (-2, 2), (-2, 2)]
    expected, _ = nquad(wrong, ranges, opts={"epsabs": 1e-4, "limit": 20})
    metrics = last(replace(CONFIG, epochs=1))
    assert metrics["noise/probability"] == pytest.approx(expected, abs=0.002)
    assert metrics["noise/sampled"] == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.3), Beta(alpha=1.0)])
def test_the_bound_never_fails_with_sampled_labels(law: Law) -> None:
    for record in finished(replace(CONFIG, law=law, epochs=8)):
        assert record.metrics["bound/failures"] == 0
        assert record.metrics["noise/probability"] >= record.metrics["bound/distance"]
        assert record.metrics["bound/half_sup"] == record.metrics["bound/distance"] / 2


def test_the_printed_bound_fails_for_16_and_its_half_form_for_6_of_1000_pairs() -> None:
    """Theorem 1 of arXiv:2303.01475 is wrong as printed; another program found these shares."""
    config = replace(CONFIG, truth="argmax", first_steepness=3.0, epochs=1, draws=200_000)
    metrics = last(config)
    assert metrics["bound/failures"] == pytest.approx(0.016, abs=0.001)
    assert metrics["bound/half_sup_failures"] == pytest.approx(0.006, abs=0.0007)


@pytest.mark.parametrize("truth", ["sampled", "argmax"])
def test_sampled_and_argmax_labels_agree_for_a_very_steep_probability(truth: str) -> None:
    values = {"law": {"beta": 1.0}, "truth": truth, "first_steepness": 1e6, "epochs": 1}
    metrics = last(built(LabelNoiseBoundConfig, values))
    assert metrics["bound/failures"] == 0
    assert metrics["bound/distance"] == pytest.approx(0.274, abs=0.005)
    assert metrics["noise/probability"] == pytest.approx(metrics["bound/distance"], abs=1e-4)
