"""Probabilities of equivalence, in closed form and by simulation."""

import math

import numpy as np
import pytest
import scipy.stats

from reports.numbers.comparison import compare
from reports.numbers.equivalence import equivalence


@pytest.mark.parametrize("margin", [0.005, 0.02, 0.5])
def test_the_probabilities_of_equivalence_agree_with_the_closed_form(margin: float) -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    differences = np.subtract(ours, theirs)
    scale = differences.std(ddof=1) / math.sqrt(5)
    found = equivalence(compare(dict(enumerate(ours)), dict(enumerate(theirs))), margin)
    assert found is not None
    below, above = (
        scipy.stats.t.cdf((-margin - differences.mean()) / scale, 4),
        scipy.stats.t.sf((margin - differences.mean()) / scale, 4),
    )
    assert (found.below, found.above) == pytest.approx((below, above), abs=1e-12)
    assert found.below + found.within + found.above == pytest.approx(1)


def test_the_probabilities_of_equivalence_agree_with_a_simulated_posterior() -> None:
    differences = np.array([-0.01, 0.02, -0.03, -0.02, 0.0])
    found = equivalence(compare(dict(enumerate(differences)), dict.fromkeys(range(5), 0.0)), 0.01)
    assert found is not None
    rng = np.random.default_rng(8)
    sds = differences.std(ddof=1) * np.sqrt(4 / rng.chisquare(4, size=400_000))
    means = rng.normal(differences.mean(), sds / math.sqrt(5))
    assert found.below == pytest.approx(np.mean(means < -0.01), abs=0.003)
    assert found.above == pytest.approx(np.mean(means > 0.01), abs=0.003)


def test_equivalence_needs_two_seeds_and_a_nonzero_spread() -> None:
    assert equivalence(compare({0: 0.1}, {0: 0.2}), 0.01) is None
    assert equivalence(compare({0: 0.4, 1: 0.3, 2: 0.2}, {0: 0.3, 1: 0.2, 2: 0.1}), 0.01) is None
