from dataclasses import replace

import numpy as np
import pytest

from mixup_core.laws import Beta, Erm
from mixup_core.theory.gaussian_features import (
    GaussianFeaturesConfig,
    expected_excess,
    noise_square,
)
from tests.mixup_core.theory.processes import finished, last

CONFIG = GaussianFeaturesConfig(law=Beta(alpha=1.0), samples=200)


def test_noise_square_matches_drawn_pairs() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(-1, 1, (2, 200_000, 5))
    lam = rng.random(200_000)
    drawn = lam * (1 - lam) * ((first - second) ** 2).sum(axis=1)
    assert noise_square(Beta(alpha=1.0), 5) == pytest.approx((drawn**2).mean(), rel=0.02)
    assert noise_square(Erm(), 5) == 0


@pytest.mark.parametrize(("ratio", "limit"), [(0.5, 0.3), (2.0, 0.5 + 0.3), (4.0, 0.75 + 0.1)])
def test_the_expected_excess_has_the_known_values_at_time_0_and_infinity(
    ratio: float, limit: float
) -> None:
    assert expected_excess(ratio, 1e7, 0.3) == pytest.approx(limit, rel=2e-3)
    assert expected_excess(ratio, 0.0, 0.3) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_mean_risk_over_seeds_matches_the_closed_form(ratio: float) -> None:
    runs = [finished(replace(CONFIG, ratio=ratio, seed=seed)) for seed in range(20)]
    for epoch in (4, 8, 24):
        risks = [run[epoch].metrics["risk/excess"] for run in runs]
        theory = runs[0][epoch].metrics["risk/theory"]
        error = 4 * np.std(risks) / np.sqrt(len(risks)) + 0.02
        assert np.mean(risks) == pytest.approx(theory, abs=error)


def test_without_noise_the_risk_never_rises() -> None:
    for ratio in (0.5, 1.0, 2.0):
        assert last(replace(CONFIG, law=Erm(), ratio=ratio))["risk/rise"] < 1e-12
