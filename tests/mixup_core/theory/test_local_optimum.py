import numpy as np
import pytest

from mixup_core.laws import Beta, Law, Midpoint
from mixup_core.theory.local_optimum import local_weights

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(8, 2))
LABELS = np.array([0, 1, 0, 1, 2, 2, 0, 1])


@pytest.mark.parametrize("law", [Beta(alpha=1.0), Beta(alpha=0.3), Beta(alpha=4.0)], ids=str)
def test_local_weights_match_drawn_pairs(law: Law) -> None:
    places = RNG.normal(size=(5, 2))
    found = local_weights(places, POINTS, LABELS, law, 0.5)
    draws = 400_000
    first, second = RNG.integers(8, size=(2, draws))
    lam = law.draw(draws, RNG)
    mixed = lam[:, None] * POINTS[first] + (1 - lam[:, None]) * POINTS[second]
    for place, weights in zip(places, found, strict=True):
        near = np.linalg.norm(mixed - place, axis=1) <= 0.5
        drawn = np.bincount(LABELS[first], lam * near, 3)
        drawn += np.bincount(LABELS[second], (1 - lam) * near, 3)
        np.testing.assert_allclose(weights, drawn / draws, atol=4e-3)


def test_local_weights_of_midpoint_give_half_to_each_label() -> None:
    points, labels = np.array([[0.0], [1.0]]), np.array([0, 1])
    found = local_weights(np.array([[0.5], [0.0], [0.25]]), points, labels, Midpoint(), 0.1)
    np.testing.assert_allclose(found, [[0.25, 0.25], [0.25, 0], [0, 0]])
