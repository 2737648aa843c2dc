import pytest
import scipy.stats

from reports.tables.equivalences import equivalence_table
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
