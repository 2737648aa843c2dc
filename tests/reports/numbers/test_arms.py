from dataclasses import replace

import pytest
import scipy.stats

from reports.numbers.arms import equals
from reports.tables.table import tabulate
from tests.reports.synthetic import FINISHED, SMALL, ended, make_study, rows_of


def test_arms_are_compared_with_the_declared_baseline_and_not_with_an_arm_of_its_name() -> None:
    table = tabulate(replace(SMALL, baseline="midpoint"), FINISHED)
    assert table.baseline == "midpoint"
    assert [row.compared is None for row in table.rows] == [False, True, False]
    assert table.header[3] == "minus midpoint, points"


def test_an_arm_with_a_diverged_seed_has_no_mean() -> None:
    diverged = {"epochs": 4, "failure": "loss is nan", "kind": "diverged"}
    table = tabulate(SMALL, ended(SMALL, {("uniform", 2): diverged}))
    row = table.rows[2]
    assert row.seeds == "4/5, 1 diverged"
    assert row.summaries == {}
    assert row.compared is None
    assert rows_of(table.csv())[2]["test/error_mean"] == ""
    assert "paired by seed. There is one comparison, so" in table.caption


def test_a_dagger_allows_for_the_number_of_comparisons_in_the_table() -> None:
    near = {
        ("midpoint", seed): {"error": 0.2 + offset}
        for seed, offset in enumerate((0.0, 0.004, 0.016, 0.008, 0.012))
    }
    near |= {("uniform", seed): {"error": 0.2} for seed in range(5)}
    table = tabulate(SMALL, ended(SMALL, near))
    alone = scipy.stats.ttest_1samp([0.0, 0.004, 0.016, 0.008, 0.012], 0).pvalue
    assert alone < 0.05 < 2 * alone
    assert [row.is_close for row in table.rows] == [False, True, False]
    assert table.cells[1][1].endswith("†")
    assert "†: not significantly different" in table.caption

    lost = {("erm", seed): {"epochs": 4, "failure": "nan", "kind": "diverged"} for seed in range(5)}
    study = make_study(("erm", "midpoint", "uniform", "other"))
    far = {("other", seed): {"error": 0.9 - seed / 100} for seed in range(5)}
    table = tabulate(study, ended(study, near | lost | far))
    assert [row.is_close for row in table.rows] == [False, True, False, False]


def test_an_arm_that_shares_one_seed_with_the_best_or_computes_the_same_has_a_dagger() -> None:
    partial = {("erm", seed): {"epochs": 3} for seed in range(1, 5)}
    table = tabulate(SMALL, ended(SMALL, partial))
    assert [row.is_close for row in table.rows] == [True, False, False]
    equal = {("midpoint", seed): {"error": 0.194 + 0.01 * seed} for seed in range(5)}
    equal |= {("uniform", seed): {"error": 0.194 + 0.01 * seed} for seed in range(5)}
    table = tabulate(SMALL, ended(SMALL, equal))
    assert [(row.is_best, row.is_close) for row in table.rows[1:]] == [(True, False), (False, True)]


def test_the_baseline_represents_all_arms_equal_to_the_baseline() -> None:
    study = make_study(arms=("uniform", "erm", "midpoint"))
    arms = {"again": study.arms["erm"], **study.arms}
    found = equals(replace(study, arms=arms))
    assert found == {"again": "erm", "uniform": "uniform", "erm": "erm", "midpoint": "midpoint"}


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"name": "cifar10"}, "data.name"), ({"val_size": 5000}, "data.val_size")],
)
def test_arms_measured_on_different_data_are_not_compared(
    changed: dict[str, object], named: str
) -> None:
    data = replace(SMALL.arms["midpoint"].data, **changed)
    arms = {**SMALL.arms, "midpoint": replace(SMALL.arms["midpoint"], data=data)}
    table = tabulate(replace(SMALL, arms=arms), ended(replace(SMALL, arms=arms), {}))
    assert all(row.compared is None and not row.is_best for row in table.rows)
    assert f"Arms differ in {named}, so they cannot be paired by seed or compared." in table.caption
