import math

import numpy as np
import pytest
import scipy.stats

from reports.numbers.comparison import compare
from reports.tables.equivalence_table import equivalence, equivalence_table
from reports.tables.table import tabulate
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
