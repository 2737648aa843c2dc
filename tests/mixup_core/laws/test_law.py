"""Laws: quantiles, draws, moments and label entropy of every law agree with SciPy."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad
from scipy.special import entr

from mixup_core.config.building import parsed
from mixup_core.config.written_forms import spellings
from mixup_core.laws import Beta, BetaAb, Discrete, Erm, Law, Midpoint, Truncated
from mixup_core.rules import RuleError
from mixup_core.seeding import stream

LEVELS = np.array([0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999])


def _within(alpha: float, low: float, high: float) -> Any:
    """Return a truncated Beta law as a SciPy density, normalised by quadrature."""
    whole = scipy.stats.beta(alpha, alpha)
    mass = whole.cdf(high) - whole.cdf(low)

    class Within(scipy.stats.rv_continuous):
        def _pdf(self, x: Any) -> Any:
            return whole.pdf(x) / mass

        def _cdf(self, x: Any) -> Any:
            return (whole.cdf(x) - whole.cdf(low)) / mass

    return Within(a=low, b=high, name="within")()


CONTINUOUS: list[tuple[Law, Any]] = [
    (Beta(alpha=0.3), scipy.stats.beta(0.3, 0.3)),
    (Beta(alpha=1.0), scipy.stats.beta(1, 1)),
    (Beta(alpha=8.0), scipy.stats.beta(8, 8)),
    (Beta(alpha=1024.0), scipy.stats.beta(1024, 1024)),
    (BetaAb(a=2.0, b=0.5), scipy.stats.beta(2, 0.5)),
    (BetaAb(a=0.7, b=3.0), scipy.stats.beta(0.7, 3)),
    (BetaAb(a=4.0, b=4.0), scipy.stats.beta(4, 4)),
    (Truncated(alpha=1.0, low=0.5), scipy.stats.uniform(0.5, 0.5)),
    (Truncated(alpha=2.0, low=0.1, high=0.6), _within(2.0, 0.1, 0.6)),
    (Truncated(alpha=3.0, low=0.25, high=0.75), _within(3.0, 0.25, 0.75)),
]
DISCRETE = Discrete(values=(0.5, 1.0), shares=(0.7, 0.3))
THREE_VALUES = Discrete(values=(0.2, 0.5, 0.8), shares=(0.25, 0.5, 0.25))
CHOSEN = [*(law for law, _ in CONTINUOUS), Erm(), Midpoint(), DISCRETE]
OTHERS = [kind for kind in Law.catalogue.values() if kind not in {type(law) for law in CHOSEN}]
EVERY: list[Law] = [*CHOSEN, *(parsed(Law, spellings(kind)[0]) for kind in OTHERS)]
"""Laws that are compared with SciPy, and one of each other kind in the catalogue."""


@pytest.mark.parametrize(("law", "expected"), CONTINUOUS, ids=[str(law) for law, _ in CONTINUOUS])
def test_quantiles_draws_and_moments_match_scipy(law: Law, expected: Any) -> None:
    np.testing.assert_allclose(law.quantiles(LEVELS), expected.ppf(LEVELS), atol=1e-7)
    drawn = law.draw((100, 100), stream(0, "mixing"))
    assert drawn.shape == (100, 100)
    assert scipy.stats.kstest(drawn.ravel(), expected.cdf).pvalue > 1e-3
    assert law.mean == pytest.approx(expected.mean(), abs=1e-6)
    assert law.variance == pytest.approx(expected.var(), rel=2e-3)
    low, high = expected.support()
    entropy, _ = quad(lambda p: float(entr(p) + entr(1 - p)) * expected.pdf(p), low, high)
    assert law.label_entropy() == pytest.approx(entropy, abs=1e-5)
    for start, end in ((0.0, 1.0), (0.2, 0.55), (0.5, 0.9)):
        mass, first = law.moments_within(start, end)
        assert mass == pytest.approx(expected.cdf(end) - expected.cdf(start), abs=1e-8)
        ends = np.clip((start, end), low, high)
        mean, _ = quad(lambda p: p * expected.pdf(p), *ends)
        assert first == pytest.approx(mean, abs=1e-7)


def test_quantiles_draws_and_moments_of_a_discrete_law_follow_its_shares() -> None:
    law = Discrete(values=(0.0, 0.25, 1.0), shares=(0.2, 0.5, 0.3))
    expected = scipy.stats.rv_discrete(values=(range(3), law.shares))
    found = law.quantiles(LEVELS).tolist()
    assert found == [law.values[int(index)] for index in expected.ppf(LEVELS)]
    counts = np.unique(law.draw(10_000, stream(0, "mixing")), return_counts=True)[1]
    assert scipy.stats.chisquare(counts, 10_000 * np.array(law.shares)).pvalue > 1e-3
    assert law.mean == pytest.approx(0.425)
    assert law.variance == pytest.approx(0.5 * 0.25**2 + 0.3 - 0.425**2)
    quarter = float(scipy.stats.entropy([0.25, 0.75]))
    assert law.label_entropy() == pytest.approx(0.5 * quarter)
    assert law.moments_within(0.1, 1.0) == pytest.approx((0.8, 0.425))
    assert not law.is_symmetric
    assert Discrete(values=(0.2, 0.5, 0.8), shares=(0.3, 0.4, 0.3)).is_symmetric


def test_constant_laws_use_no_random_numbers() -> None:
    rng = stream(0, "mixing")
    before = rng.bit_generator.state["state"]["counter"].copy()
    assert (Erm().draw(3, rng) == 1).all()
    assert (Midpoint().draw((2, 3), rng) == 0.5).all()
    np.testing.assert_array_equal(rng.bit_generator.state["state"]["counter"], before)
    assert Erm().nodes(9).tolist() == [1.0]
    assert Midpoint().nodes(9).tolist() == [0.5]
    assert (Erm().label_entropy(), Midpoint().label_entropy()) == (0, math.log(2))
    assert (Erm().mixes, Midpoint().mixes) == (False, True)


@pytest.mark.parametrize("count", [4, 7, 8, 16])
@pytest.mark.parametrize("law", [*EVERY, THREE_VALUES], ids=str)
def test_nodes_of_pairs_have_the_mean_of_all_nodes_for_functions_that_reversal_leaves_equal(
    law: Law, count: int
) -> None:
    for of in (lambda lam: lam * (1 - lam), lambda lam: abs(lam - 0.5) ** 3):
        mean = of(law.nodes_of_pairs(count)).mean()
        assert mean == pytest.approx(of(law.nodes(count)).mean(), abs=1e-9)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Discrete(values=(0.5,), shares=(0.5,)), "needs at least two values"),
        (lambda: Discrete(values=(1.0, 0.5), shares=(0.5, 0.5)), "values .* must increase"),
        (lambda: Discrete(values=(0.5, 1.0), shares=(0.5,)), "each value needs one share"),
        (lambda: Discrete(values=(0.5, 1.0), shares=(0.5, 0.4)), "shares .* must add up to 1"),
        (lambda: Truncated(alpha=1.0, low=0.5, high=0.5), "low < high"),
        (lambda: Truncated(alpha=1e4, low=0.9), r"P\(low <= lam <= high\) >= 1e-6"),
    ],
)
def test_a_law_that_is_not_a_distribution_is_refused(make: Any, rule: str) -> None:
    with pytest.raises(RuleError, match=rule):
        make()
