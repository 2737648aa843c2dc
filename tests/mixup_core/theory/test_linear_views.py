import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, xlogy
from torch.nn.functional import cross_entropy

from mixup_core.laws import Beta, BetaAb, Erm, Law, Midpoint
from mixup_core.theory.linear_views import (
    Excess,
    Gap,
    LinearViewsConfig,
    divergence,
    equal_excess,
    equal_gap,
    gradient_correlations,
    least_gap,
    pair_excess,
    sampled_correlations,
)
from tests.mixup_core.theory.processes import finished, last

CONFIG = LinearViewsConfig(law=Midpoint(), epochs=3)


def _pairs(values: Any, lam: float) -> Any:
    """Return the mixtures of all pairs of rows: (rows, rows, columns)."""
    return lam * values[:, None] + (1 - lam) * values


@pytest.mark.parametrize("lam", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_pair_excess_is_cross_entropy_minus_entropy(lam: float, classes: int) -> None:
    rng = np.random.default_rng(0)
    logits, labels = 3 * rng.normal(size=(9, classes)), rng.integers(classes, size=9)
    soft = _pairs(np.eye(classes)[labels], lam)
    losses = (xlogy(soft, soft) - soft * log_softmax(_pairs(logits, lam), axis=2)).sum(axis=2)
    np.testing.assert_allclose(pair_excess(logits, labels, lam), losses, atol=1e-12)


def test_the_divergence_is_accurate_where_the_loss_is_rounded_away() -> None:
    value = divergence(40.0, 40.0, math.log(3), 0.5)
    assert value == pytest.approx(1.5 * math.exp(-40), rel=1e-12)
    assert np.isfinite(divergence(2000.0, -2000.0, 5000.0, np.array([0.5, 1.0]))).all()


def test_the_gap_of_midpoint_matches_the_closed_form_of_the_lemma() -> None:
    for correlation in (0.0, 1.0, 7.0):
        expected = math.log(2 + 3 * math.exp(-correlation / 2)) - math.log(2)
        assert equal_gap(correlation, 0.5, 5) == pytest.approx(expected, rel=1e-12)


def test_equal_excess_is_the_mean_over_all_pairs_of_a_balanced_set() -> None:
    labels = np.repeat(np.arange(4), 2)
    logits = 3.0 * np.eye(4)[labels]
    for law in (Erm(), Midpoint(), Beta(alpha=0.5)):
        pairs = [pair_excess(logits, labels, lam).mean() for lam in law.nodes(50)]
        assert equal_excess(3.0, law, 4, 50) == pytest.approx(np.mean(pairs), rel=1e-12)


@pytest.mark.parametrize(
    ("excess", "expected", "rel"),
    [
        (Excess(first=1.2, second=0.8), [0.106, 0.050, 0.154], 0.1),
        # how many of the 200 points have class 0 varies by seed, and the excess by 11 % (sd)
        (Excess(first_class=1.3), [0.106, 0.086, 0.263], 0.3),
    ],
)
def test_the_measured_excess_matches_another_program(
    excess: Excess, expected: list[float], rel: float
) -> None:
    """Another program computed it at scales 5, 10 and 20, for lemma 3.2 of arXiv:2210.13512."""
    records = finished(replace(CONFIG, quantity=excess, first_scale=5.0))
    measured = [record.metrics["excess/measured"] for record in records]
    assert measured == pytest.approx(expected, rel=rel)


def test_the_measured_excess_of_equal_correlations_matches_the_closed_form() -> None:
    for record in finished(CONFIG):
        metrics = record.metrics
        assert metrics["excess/measured"] == pytest.approx(metrics["excess/exact"], rel=0.05)


@pytest.mark.parametrize(
    ("alpha", "best", "gap"),
    [
        (0.2, 6.06, 0.1168),
        (2, 6.12, 0.2482),
        (32, 8.98, 0.1152),
        (1024, 14.41, 0.0122),
    ],
)
def test_the_least_gap_matches_another_program(alpha: float, best: float, gap: float) -> None:
    """The gap is that of proposition 3.3 of arXiv:2210.13512."""
    found, where = least_gap(Beta(alpha=alpha).nodes(4000), 10)
    assert found == pytest.approx(gap, abs=6e-5)
    assert where == pytest.approx(best, abs=6e-3)


@pytest.mark.parametrize("law", [Midpoint(), Erm()])
def test_the_least_gap_of_midpoint_and_erm_is_0(law: Law) -> None:
    assert least_gap(law.nodes(10), 10) == (0.0, math.inf)
    metrics = last(LinearViewsConfig(law=law, quantity=Gap(), classes=10, first_scale=20, epochs=1))
    assert "gap/best_scale" not in metrics
    assert metrics["gap/minimum"] == 0 < metrics["gap/at_scale"] < 2e-4


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=1.0)])
@pytest.mark.parametrize("k", [2, 3])
def test_gradient_correlations_match_autograd_of_the_mixed_loss(law: Law, k: int) -> None:
    # the shares are the midpoint rule of U[.1, .9], good to .06 %; 7 quantiles are the law in both
    betas = 0.1 + 0.8 * (np.arange(40) + 0.5) / 40
    inputs = torch.from_numpy(np.kron(np.eye(k), np.stack([betas, 1 - betas], axis=1)))
    targets = torch.eye(k, dtype=torch.float64).repeat_interleave(40, dim=0)
    weights = torch.from_numpy(np.kron(np.eye(k), [2.0, 0.0])).requires_grad_()
    losses = [
        cross_entropy(
            (_pairs(inputs, lam) @ weights.T).flatten(0, 1), _pairs(targets, lam).flatten(0, 1)
        )
        for lam in law.nodes(7)
    ]
    (gradient,) = torch.autograd.grad(-sum(losses) / len(losses), weights)
    first, second = gradient[0, :2].tolist()
    expected = pytest.approx((second, first - second), rel=1e-3)
    assert gradient_correlations(law, k, 2.0, nodes=7) == expected


def test_gradient_correlations_of_an_asymmetric_law_match_drawn_pairs() -> None:
    law = BetaAb(a=2.0, b=0.5)
    exact = gradient_correlations(law, 5, 3.0, 400)
    sampled = sampled_correlations(law, 5, 3.0, 400_000, np.random.default_rng(0))
    assert sampled == pytest.approx(exact, rel=0.02)
