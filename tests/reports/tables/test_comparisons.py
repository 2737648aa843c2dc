"""Tests of further tables that compare arms."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from mixup_core.records import EpochRecord
from reports.numbers.comparison import compare
from reports.numbers.runs import arrange
from reports.tables.comparisons import (
    equivalence,
    equivalence_table,
    reference_table,
    seeds_table,
    sensitivity_table,
)
from reports.tables.table import tabulate
from sweeps.study.readouts import MeanOfLast
from tests.reports.synthetic import ended, finish, make_study, with_metrics


def test_the_seeds_table_has_values_and_differences_of_each_arm_by_seed() -> None:
    study = make_study(("erm", "uniform"), seeds=(3, 5, 9))
    errors = {("erm", 3): 0.20, ("erm", 5): 0.30, ("uniform", 3): 0.10, ("uniform", 9): 0.25}
    results = [
        finish(run, errors[run.arm, run.seed])
        for run in study.runs()
        if (run.arm, run.seed) in errors
    ]
    listing = seeds_table(arrange(study, results), tabulate(study, results))
    assert listing.header == ("arm", "", "seed 3", "seed 5", "seed 9")
    assert listing.cells == (
        ("erm", "test error, %", "20.00", "30.00", "—"),
        ("uniform", "test error, %", "10.00", "—", "25.00"),
        ("uniform", "minus erm, points", "-10.00", "—", "—"),
    )
    assert listing.is_long
    assert [tuple(record.values()) for record in listing.records] == [
        ("erm", 3, 0.20, None), ("erm", 5, 0.30, None), ("erm", 9, None, None),
        ("uniform", 3, 0.10, 0.10 - 0.20), ("uniform", 5, None, None), ("uniform", 9, 0.25, None),
    ]  # fmt: skip


def averaged(record: EpochRecord) -> Mapping[str, float]:
    return {**record.metrics, "test/error_averaged": record.metrics["test/error"]}


def test_the_sensitivity_table_has_every_comparison_under_every_readout() -> None:
    study = make_study()
    results = [with_metrics(finish(run), averaged) for run in study.runs()]
    listing = sensitivity_table(study, arrange(study, results), tabulate(study, results))
    assert [cells[:2] for cells in listing.cells] == [
        (f"{arm} minus erm", readout)
        for arm in ("midpoint", "uniform")
        for readout in (
            "last epoch, primary", "mean of the last 3 evaluations", "averaged weights, last epoch",
        )
    ]  # fmt: skip
    assert [record["is_primary"] for record in listing.records] == 2 * [True, False, False]


@pytest.mark.parametrize("epochs", [10, 2])
def test_the_sensitivity_table_uses_the_readout_of_the_study_and_needs_two_readouts(
    epochs: int,
) -> None:
    study = replace(make_study(), readout=MeanOfLast(evaluations=4))
    results = [finish(run, epochs=epochs) for run in study.runs()]
    listing = sensitivity_table(study, arrange(study, results), tabulate(study, results))
    if epochs == 2:
        assert listing is None
    else:
        assert listing.cells[0][1] == "mean of the last 4 evaluations, primary"


def test_each_arm_has_the_three_probabilities_of_the_posterior() -> None:
    study = make_study()
    table = tabulate(study, ended(study, {}))
    listing = equivalence_table(table, 0.005)
    assert [cells[0] for cells in listing.cells] == ["midpoint", "uniform"]
    found = equivalence(table.rows[1].compared.comparison, 0.005)
    names = ("p_better", "p_equivalent", "p_worse")
    assert tuple(listing.records[0][name] for name in names) == found
    assert "margin of 0.50 points" in listing.caption


@pytest.mark.parametrize("margin", [0.005, 0.02, 0.5])
def test_the_probabilities_of_equivalence_agree_with_the_closed_form(margin: float) -> None:
    ours, theirs = [0.21, 0.19, 0.25, 0.20, 0.22], [0.23, 0.24, 0.25, 0.23, 0.29]
    differences = np.subtract(ours, theirs)
    found = equivalence(compare(dict(enumerate(ours)), dict(enumerate(theirs))), margin)
    posterior = scipy.stats.t(4, differences.mean(), scipy.stats.sem(differences))
    below, above = posterior.cdf(-margin), posterior.sf(margin)
    assert found == pytest.approx((below, 1 - below - above, above), abs=1e-12)


def test_a_published_value_is_shown_next_to_the_measured_one_with_the_difference() -> None:
    references = {"uniform": {"test/error": 0.19, "test/nll": 0.5}, "nobody": {"test/error": 0.1}}
    study = replace(make_study(), references=references)
    listing = reference_table(study, arrange(study, ended(study, {})))
    assert listing.cells[0] == (
        "uniform", "test error, %", "19.64 ± 1.48", "5/5", "19.00", "0.64 points [-0.84, 2.12]",
    )  # fmt: skip
    assert listing.cells[1][1] == "test NLL, nats"
    assert len(listing.cells) == 2
    assert listing.records[0]["difference"] == pytest.approx(listing.records[0]["mean"] - 0.19)


def test_an_untrained_method_shows_only_its_published_value() -> None:
    study = replace(
        make_study(),
        references={"erm": {"test/error": 0.2}},
        untrained={"AlignMix": {"test/error": 0.0295}},
    )
    listing = reference_table(study, arrange(study, ended(study, {})))
    assert [cells[0] for cells in listing.cells] == ["erm", "AlignMix"]
    assert listing.cells[1] == ("AlignMix", "test error, %", "—", "not trained", "2.95", "—")
    assert listing.records[1]["mean"] is None
