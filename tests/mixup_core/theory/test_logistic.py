from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from mixup_core.keys import run_key
from mixup_core.laws import Beta, BetaAb, Discrete, Erm, Law, Midpoint, Truncated
from mixup_core.problem import problem_of
from mixup_core.theory.logistic import minimiser, slopes
from mixup_core.theory.mixup_expansion import MixupExpansionConfig
from mixup_core.theory.separability import SeparabilityConfig
from mixup_core.theory.spurious_feature import SpuriousFeatureConfig


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.7)])
def test_slopes_match_the_explicit_loss_and_its_finite_differences(law: Law) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=6), np.array([1.0, -1.0] * 3)
    lams = law.nodes(5)

    def mixed(values: np.ndarray) -> np.ndarray:
        return np.array([np.add.outer(lam * values, (1 - lam) * values) for lam in lams])

    def loss(values: np.ndarray) -> float:
        return float((np.logaddexp(0, mixed(values)) - mixed(labels > 0) * mixed(values)).mean())

    found, gradient = slopes(scores, labels, lams)
    assert found == pytest.approx(loss(scores), rel=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(scores, loss), atol=1e-7)


def _points(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + 0.3 * labels[:, None], labels


@pytest.mark.parametrize("law", [Midpoint(), Beta(alpha=0.5)])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_minimiser_matches_a_general_optimizer(law: Law, decay: float) -> None:
    inputs, labels = _points(20, 3)
    lams = law.nodes(4)

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = slopes(inputs @ weights, labels, lams)
        total = loss + decay / 2 * weights @ weights
        return total, inputs.T @ gradient + decay * weights

    search = minimize(objective, np.zeros(3), jac=True, options={"gtol": 1e-10})
    found, left = minimiser(inputs, labels, lams, decay)
    np.testing.assert_allclose(found, search.x, atol=1e-6)
    assert left < 1e-12


CONFIGS = [MixupExpansionConfig, SeparabilityConfig, SpuriousFeatureConfig]


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(
    ("law", "is_corrected"),
    [
        (Discrete(values=(0.25, 0.5, 0.75), shares=(0.25, 0.5, 0.25)), True),
        (Discrete(values=(0.25, 0.75), shares=(0.5, 0.5)), False),
        (Discrete(values=(0.5, 1.0), shares=(0.5, 0.5)), False),
        (Beta(alpha=0.3), False),
        (BetaAb(a=2.0, b=2.0), False),
        (Truncated(alpha=1.0, low=0.25, high=0.75), False),
        (Midpoint(), False),
        (Erm(), False),
    ],
    ids=str,
)
def test_only_laws_whose_weight_of_one_half_was_corrected_have_new_keys(
    kind: type[Any], law: Law, is_corrected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kind(law=law)
    key, problem = run_key(config), problem_of(config)
    before = replace(problem, keying=replace(problem.keying, corrected=lambda config: 0))
    monkeypatch.setattr("mixup_core.keys.problem_of", lambda config: before)
    assert (run_key(config) != key) == is_corrected
