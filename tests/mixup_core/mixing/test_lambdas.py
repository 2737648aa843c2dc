import numpy as np
import pytest
from scipy import stats

from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.mixing.lambdas import draw_lambdas


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_beta_weights_have_the_moments_and_the_distribution_of_their_law(alpha: float) -> None:
    lam = draw_lambdas(Beta(alpha=alpha), 20_000, _rng()).double().numpy()
    assert lam.mean() == pytest.approx(0.5, abs=0.01)
    assert lam.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.05)
    assert stats.kstest(lam, stats.beta(alpha, alpha).cdf).statistic < 0.02, (
        "1.63 / sqrt(n) + float32"
    )


def test_erm_and_midpoint_use_no_random_numbers() -> None:
    rng = _rng()
    assert draw_lambdas(Erm(), 3, rng).tolist() == [1, 1, 1]
    assert draw_lambdas(Midpoint(), 3, rng).tolist() == [0.5, 0.5, 0.5]
    assert rng.random() == _rng().random()


@pytest.mark.parametrize("alpha", [1e-3, 1e4])
def test_weights_of_extreme_laws_stay_in_the_unit_interval(alpha: float) -> None:
    lam = draw_lambdas(Beta(alpha=alpha), 1000, _rng())
    assert lam.isfinite().all()
    assert (lam >= 0).all()
    assert (lam <= 1).all()
