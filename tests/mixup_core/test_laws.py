import math

import numpy as np
import pytest
import scipy.stats

from mixup_core.laws import MIN_ALPHA, Beta, Erm, Law, Midpoint, lambda_quantiles
from mixup_core.tree.building import parsed
from mixup_core.tree.spelling_errors import SpellingError
from mixup_core.tree.written_forms import spelled


@pytest.mark.parametrize("alpha", [0.0, -1.0, 5e-324, 0.9e-6, 1.1e6, math.inf, math.nan])
def test_a_beta_law_needs_a_positive_finite_alpha(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"`1e-6 <= alpha <= 1e6` must hold"):
        Beta(alpha=alpha)


def test_below_the_least_alpha_no_weight_in_float32_lies_between_0_and_1() -> None:
    """Of 100,000 weights fewer than 7 do at it, 0.07 at a hundredth of it: a coin on {0, 1}."""
    last_below_1, least = 1 - 2**-25, 2**-150  # float32 rounds what is beyond to 1 and to 0
    for share in (1.0, 0.01):
        between = scipy.stats.beta(share * MIN_ALPHA, share * MIN_ALPHA)
        inside = between.cdf(last_below_1) - between.cdf(least)
        assert 6e-5 * share < inside < 7e-5 * share
    drawn = np.random.default_rng(0).beta(MIN_ALPHA, MIN_ALPHA, 10**6).astype(np.float32)
    assert 30 < ((drawn > 0) & (drawn < 1)).sum() < 100
    assert abs(drawn.mean() - 0.5) < 0.005


def test_alpha_zero_names_the_laws_it_could_mean() -> None:
    with pytest.raises(ValueError, match="for lam = 1/2 write midpoint"):
        Beta(alpha=0.0)


@pytest.mark.parametrize(
    ("spelling", "law"),
    [("erm", Erm()), ("midpoint", Midpoint()), ({"beta": 0.5}, Beta(alpha=0.5))],
)
def test_a_law_is_spelled_and_parsed_alike(spelling: object, law: Law) -> None:
    assert parsed(Law, spelling) == law
    assert spelled(law) == spelling


@pytest.mark.parametrize(
    "spelling", ["mixup", 0, None, {"beta": "1"}, {"beta": True}, {"a": 1}, {}]
)
def test_other_spellings_of_a_law_are_refused(spelling: object) -> None:
    with pytest.raises(SpellingError, match=r"expected (erm, midpoint or|a number|one of)"):
        parsed(Law, spelling)


def test_quantiles_are_those_of_the_law() -> None:
    levels = (0.05, 0.5, 0.95)
    assert lambda_quantiles(Erm(), levels) == (1.0, 1.0, 1.0)
    assert lambda_quantiles(Midpoint(), levels) == (0.5, 0.5, 0.5)
    assert lambda_quantiles(Beta(alpha=1.0), levels) == pytest.approx(levels)
    for alpha in (0.1, 8.0, 1024.0):
        expected = scipy.stats.beta(alpha, alpha).ppf(levels)
        assert lambda_quantiles(Beta(alpha=alpha), levels) == pytest.approx(tuple(expected))
