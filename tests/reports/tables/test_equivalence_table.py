import math

import numpy as np
import pytest
import scipy.stats

from reports.numbers.comparison import compare
from reports.tables.equivalence_table import equivalence, equivalence_table
from reports.tables.table import tabulate
from tests.reports.decay import decay_study, decayed
from tests.reports.synthetic import ended, make_study


def test_each_arm_has_the_three_probabilities_of_the_posterior() -> None:
    study = make_study()
    table = tabulate(study, ended(study, {}))
    listing = equivalence_table(table, 0.005)
    assert listing is not None
    assert [cells[0] for cells in listing.cells] == ["midpoint", "uniform"]
    row = table.rows[1]
    assert row.compared is not None
    compared = row.compared.comparison
    assert compared.sd is not None
    better = scipy.stats.t.cdf((-0.005 - compared.difference) / (compared.sd / 5**0.5), 4)
    assert listing.records[0]["p_better"] == pytest.approx(better)
    names = ("p_better", "p_equivalent", "p_worse")
    assert sum(listing.records[0][name] for name in names) == pytest.approx(1)
    assert "margin of 0.50 points" in listing.caption


def test_better_means_above_the_margin_if_larger_is_better(decay: None) -> None:
    study = decay_study()
    listing = equivalence_table(tabulate(study, [decayed(run, 0.001) for run in study.runs()]), 0.5)
    assert listing is not None
    assert listing.cells[0][:4] == ("rate 2", "> 0.999", "< 0.001", "< 0.001")


def test_there_is_no_equivalence_table_without_a_margin_or_two_seeds() -> None:
    study = make_study()
    assert equivalence_table(tabulate(study, ended(study, {})), None) is None
    assert equivalence_table(tabulate(study, []), 0.01) is None


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


def test_equivalence_needs_two_seeds_and_a_nonzero_spread() -> None:
    assert equivalence(compare({0: 0.1}, {0: 0.2}), 0.01) is None
    assert equivalence(compare({0: 0.4, 1: 0.3, 2: 0.2}, {0: 0.3, 1: 0.2, 2: 0.1}), 0.01) is None
