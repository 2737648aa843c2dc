from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from mixup_core.laws import Beta, BetaAb, Erm, Law, Midpoint
from mixup_core.theory.alternating_line import AlternatingLineConfig, optimal_probability

CONFIG = AlternatingLineConfig(hidden=16, steps_per_epoch=5, epochs=3)


def test_midpoint_gives_the_middle_point_a_label_probability_of_one_third() -> None:
    assert optimal_probability(replace(CONFIG, law=Midpoint())) == pytest.approx(1 / 3)
    assert optimal_probability(replace(CONFIG, law=Erm())) == 1
    assert optimal_probability(replace(CONFIG, law=Beta(alpha=1e6))) == pytest.approx(1 / 3)


@pytest.mark.parametrize("law", [Beta(alpha=0.5), Beta(alpha=4.0), Midpoint(), Erm()])
@pytest.mark.parametrize(("points", "classes"), [(3, 2), (5, 3), (10, 2)])
def test_the_optimal_probability_matches_drawn_mixtures(
    law: Law, points: int, classes: int
) -> None:
    config = replace(CONFIG, law=law, points=points, classes=classes, radius=0.3)
    rng = np.random.default_rng(0)
    i, j = rng.integers(points, size=(2, 400_000))
    lam = law.draw(400_000, rng)
    near = np.abs(lam * i + (1 - lam) * j - config.middle) <= 0.3
    own = config.middle % classes
    labels = lam * (i % classes == own) + (1 - lam) * (j % classes == own)
    assert optimal_probability(config) == pytest.approx(labels[near].mean(), abs=0.01)


def test_the_closed_form_flips_between_alpha_4_and_alpha_32() -> None:
    """The public code of arXiv:2110.07647 fits the middle point at 1, and not at 32."""
    flip = brentq(lambda a: optimal_probability(replace(CONFIG, law=Beta(alpha=a))) - 0.5, 1, 64)
    assert 4 < flip < 32


def test_the_optimal_probability_of_an_asymmetric_law_matches_drawn_pairs() -> None:
    config = AlternatingLineConfig(law=BetaAb(a=2.0, b=0.5), points=3, radius=0.2)
    rng = np.random.default_rng(0)
    first, second = rng.integers(3, size=(2, 10**6))
    lam = config.law.draw(10**6, rng)
    near = abs(lam * first + (1 - lam) * second - config.middle) <= config.radius
    own = lam * (first == 1) + (1 - lam) * (second == 1)
    assert optimal_probability(config) == pytest.approx(own[near].mean(), abs=3e-3)
