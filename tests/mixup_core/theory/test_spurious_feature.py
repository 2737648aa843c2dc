from dataclasses import replace

import numpy as np
import pytest

from mixup_core.laws import Beta, Law, Midpoint
from mixup_core.theory.spurious_feature import (
    SpuriousFeatureConfig,
    errors,
    least_variance_share,
)
from tests.mixup_core.theory.processes import finished

CONFIG = SpuriousFeatureConfig(points=60, nodes=4, epochs=3)


def test_errors_match_drawn_points() -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], 300_000)
    weights = np.array([1.0, 3.0])
    core = labels * 2.0 + 0.5 * rng.normal(size=labels.size)
    found = errors(CONFIG, 0.4, weights)
    signs = (np.ones_like(labels), rng.choice([-1.0, 1.0], labels.size), -np.ones_like(labels))
    for sign, expected in zip(signs, found, strict=True):
        spurious = sign * labels * 0.5 + 0.4 * rng.normal(size=labels.size)
        wrong = (labels * (weights[0] * core + weights[1] * spurious) <= 0).mean()
        assert expected == pytest.approx(wrong, abs=0.003)


def test_the_least_variance_share_minimises_the_variance() -> None:
    variances, means = np.array([0.25, 0.01]), np.array([2.0, 0.5])

    def variance(share: float) -> float:
        weights = np.array([1 - share, share]) / means
        return float((weights**2 * variances).sum())

    shares = np.linspace(0, 1, 100_001)
    best = shares[np.argmin([variance(share) for share in shares])]
    assert least_variance_share(CONFIG, 0.1) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("law", [Midpoint(), Beta(alpha=1.0)])
def test_mixup_without_decay_and_with_many_points_reaches_the_least_variance_share(
    law: Law,
) -> None:
    config = replace(CONFIG, law=law, points=1000, decay=1e-9, first_sd=0.2, epochs=1)
    (record,) = finished(config)
    expected = record.metrics["weight/least_variance"]
    assert record.metrics["weight/spurious"] == pytest.approx(expected, rel=0.15)
