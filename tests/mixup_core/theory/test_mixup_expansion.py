import numpy as np
import pytest

from mixup_core.laws import Beta, Erm
from mixup_core.theory.logistic import slopes
from mixup_core.theory.mixup_expansion import MixupExpansionConfig, expansion
from tests.mixup_core.theory.processes import last

RNG = np.random.default_rng(0)
LABELS = np.where(np.arange(40) % 2, 1.0, -1.0)


def test_the_error_of_the_expansion_falls_with_the_fourth_power_of_the_scores() -> None:
    scores = RNG.normal(size=40) + LABELS
    lams = Beta(alpha=1.0).nodes_of_pairs(32)
    left = []
    for scale in (0.2, 0.1, 0.05):
        plain, mixed = (slopes(scale * scores, LABELS, each)[0] for each in (np.ones(1), lams))
        left.append(abs(mixed - plain - sum(expansion(scale * scores, LABELS, lams))))
    assert left[0] / left[1] == pytest.approx(2**4, rel=0.2)  # h''' is odd, so of order four
    assert left[1] / left[2] == pytest.approx(2**4, rel=0.2)


def test_the_expansion_adds_no_terms_without_mixing() -> None:
    assert expansion(RNG.normal(size=40), LABELS, np.ones(1)) == (0, 0)


def test_mixup_reduces_the_spread_of_scores_and_keeps_the_gap_below_the_bound() -> None:
    erm, uniform = (
        last(MixupExpansionConfig(law=law, rank=3, test_points=2000, epochs=1))
        for law in (Erm(), Beta(alpha=1.0))
    )
    assert uniform["scores/spread"] < erm["scores/spread"]
    assert "expansion/added" not in erm
    assert uniform["gap/slack"] > 0
