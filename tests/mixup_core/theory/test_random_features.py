from dataclasses import replace

import numpy as np
import pytest

from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.theory.random_features import (
    INITIAL_SD,
    RandomFeaturesConfig,
    edge_errors,
    mixed_pairs,
    regression,
    spectral_edges,
)
from tests.mixup_core.theory.processes import finished

CONFIG = RandomFeaturesConfig(
    law=Beta(alpha=1.0), points=20, features=15, test_points=300, epochs=12
)


@pytest.mark.parametrize("law", [Erm(), Beta(alpha=1.0), Midpoint()])
def test_mixing_noise_is_the_mixed_label_minus_the_square_of_the_mixed_input(law: Law) -> None:
    inputs, labels, noise = mixed_pairs(replace(CONFIG, law=law))
    np.testing.assert_allclose(labels - (inputs**2).sum(axis=1), noise, atol=1e-14)
    assert (noise.max() > 0.1) == law.mixes
    assert noise.reshape(20, -1).diagonal().max() == 0


def test_the_closed_form_solves_the_normal_equations() -> None:
    problem = regression(CONFIG)
    limit = problem.basis @ (problem.solution + problem.noise)
    np.testing.assert_allclose(problem.gram @ limit, problem.slope, atol=1e-9)
    initial = problem.basis.T @ problem.initial
    np.testing.assert_allclose(problem.after(np.zeros(15), initial), initial)
    np.testing.assert_allclose(problem.descended(1.0, 0, initial), initial)


@pytest.mark.parametrize("law", [Erm(), Beta(alpha=1.0)])
@pytest.mark.parametrize("lr", [1.0, 0.1])
def test_descent_matches_the_discrete_form_and_the_flow_to_first_order(law: Law, lr: float) -> None:
    records = finished(replace(CONFIG, law=law, lr=lr))
    assert [record.metrics["step"] for record in records] == [2.0**e for e in range(12)]
    assert max(record.metrics["descent/discrete_error"] for record in records) < 1e-9
    flow = max(record.metrics["descent/flow_error"] for record in records)
    assert 1e-4 * lr < flow < 0.3 * lr


def test_the_expected_risk_is_the_mean_over_random_starts() -> None:
    problem = regression(CONFIG)
    decayed = -problem.eigenvalues * 50
    rng = np.random.default_rng(0)
    risks = [
        problem.risk(problem.after(decayed, INITIAL_SD * rng.normal(size=15))) for _ in range(4000)
    ]
    assert problem.expected_risk(decayed) == pytest.approx(np.mean(risks), rel=0.01)


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=1.0)])
def test_the_risk_bound_holds_at_every_time(law: Law) -> None:
    records = finished(replace(CONFIG, law=law))
    assert max(record.metrics["bound/violation"] for record in records) == 0


def test_the_spectrum_of_gaussian_features_matches_the_corrected_edges() -> None:
    assert spectral_edges(0.25) == (0.25, 2.25)
    true, printed = edge_errors(replace(CONFIG, points=40, features=60))
    assert true < 0.1 < 0.25 < printed
