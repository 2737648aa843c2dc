from dataclasses import replace

import pytest
import scipy.stats

from mixup_core.config.building import with_values
from reports.numbers.predicted import Predicted, PredictedRun, gather_predictions
from reports.numbers.runs import arrange
from reports.numbers.spelling import DASH
from reports.tables.predictive import (
    calibration_table,
    class_differences,
    class_table,
    ensemble_table,
)
from tests.reports.synthetic import SMALL, finish, rows_of
from tests.reports.synthetic_predictions import reader

EQUAL = {arm: arm for arm in ("erm", "midpoint", "uniform")}


def test_calibration_is_compared_at_equal_seeds(predicted: Predicted) -> None:
    listing = calibration_table(predicted, "erm", EQUAL)
    assert [cells[0] for cells in listing.cells] == ["erm", "midpoint", "uniform"]
    assert len(listing.header) == len(listing.cells[0]) == 11
    row = rows_of(listing.csv())[1]
    for name, read in (
        ("calibration_error", lambda run: run.raw.error),
        ("scaled_calibration_error", lambda run: run.scaled.error),
    ):
        ours, theirs = (
            [read(run) for run in predicted.arms[arm].runs.values()] for arm in ("midpoint", "erm")
        )
        assert 0 < float(row[f"{name}_if_calibrated"]) < 0.1
        test = scipy.stats.ttest_rel(ours, theirs)
        interval = test.confidence_interval(1 - 0.05 / 2)
        assert float(row[f"{name}_mean"]) == pytest.approx(sum(ours) / 5)
        assert float(row[f"{name}_difference"]) == pytest.approx((sum(ours) - sum(theirs)) / 5)
        assert float(row[f"{name}_difference_ci_low"]) == pytest.approx(interval.low)
        assert float(row[f"{name}_difference_p_unadjusted"]) == pytest.approx(test.pvalue)
    assert "predictions of 15 of 15 runs" in listing.caption


def test_gains_of_ensembles_of_two_are_paired_by_seed(predicted: Predicted) -> None:
    listing = ensemble_table(predicted, "erm", EQUAL)
    row = rows_of(listing.csv())[2]
    ours, theirs = (list(predicted.arms[arm].pair_gain.values()) for arm in ("uniform", "erm"))
    test = scipy.stats.ttest_rel(ours, theirs)
    assert float(row["pair_gain_difference"]) == pytest.approx(sum(ours) / 5 - sum(theirs) / 5)
    assert float(row["pair_gain_difference_p"]) == pytest.approx(min(1, 2 * test.pvalue))
    interval = scipy.stats.t.interval(0.95, 4, sum(ours) / 5, scipy.stats.sem(ours))
    assert float(row["pair_gain_ci_low"]) == pytest.approx(interval[0])
    assert float(row["gain"]) == pytest.approx(float(row["error"]) - float(row["ensemble_error"]))


def test_arms_that_the_main_table_does_not_pair_are_not_compared() -> None:
    config = with_values(SMALL.arms["uniform"], {"data.val_size": 900})
    study = replace(SMALL, arms={**SMALL.arms, "uniform": config})
    other = gather_predictions(study, arrange(study, map(finish, study.runs())), reader())
    for listing in (calibration_table(other, "erm", EQUAL), ensemble_table(other, "erm", EQUAL)):
        last = rows_of(listing.csv())[2]
        assert {last[name] for name in last if "difference" in name} == {""}


def test_each_class_has_a_line_and_no_predictions_give_no_table(predicted: Predicted) -> None:
    listing = class_table(predicted, {})
    assert [cells[0] for cells in listing.cells] == ["0", "1", "2", "3"]
    assert {row["name"] for row in rows_of(listing.csv())} == {""}
    assert len(rows_of(listing.csv())) == 12
    names = ["cat", "do|g", "\x1b[2J", "кот"]
    named = class_table(predicted, dict.fromkeys(predicted.arms, names))
    assert [cells[0] for cells in named.cells] == ["cat", "do|g", "\\x1b[2J", "кот"]
    assert "by name" in named.caption
    assert [row["name"] for row in rows_of(named.csv())][::3] == ["cat", "do|g", "\\x1b[2J", "кот"]
    none = replace(predicted, arms={})
    assert class_table(none, {}) is None
    assert calibration_table(none, "erm", EQUAL) is None
    assert ensemble_table(none, "erm", EQUAL) is None


def test_a_class_without_test_images_has_no_error(predicted: Predicted) -> None:
    arms = {
        arm: replace(of_arm, of_class=[0, *of_arm.of_class[1:]])
        for arm, of_arm in predicted.arms.items()
    }
    listing = class_table(replace(predicted, arms=arms), {})
    assert {*listing.cells[0][1:]} == {DASH}
    assert {row["class"] for row in listing.records} == {1, 2, 3}


def test_each_kind_of_calibration_error_names_the_number_of_its_own_tests(
    predicted: Predicted,
) -> None:
    def unscaled(run: PredictedRun) -> PredictedRun:
        return replace(
            run, scaled=None, measures={**run.measures, "scaled_calibration_error": None}
        )

    runs = {seed: unscaled(run) for seed, run in predicted.arms["uniform"].runs.items()}
    arms = {**predicted.arms, "uniform": replace(predicted.arms["uniform"], runs=runs)}
    caption = calibration_table(replace(predicted, arms=arms), "erm", {}).caption
    assert "the calibration error: Intervals and p values are adjusted for 2 comparisons" in caption
    assert "the scaled calibration error: There is one comparison" in caption


def test_differences_of_all_classes_are_adjusted_as_one_family(predicted: Predicted) -> None:
    listing = class_differences(predicted, "erm", EQUAL, {})
    assert listing.header == ("class", "test images", "midpoint", "uniform")
    rows = rows_of(listing.csv())
    assert len(rows) == 8
    for row in rows:
        ours, theirs = (
            [float(run.classes[int(row["class"])]) for run in predicted.arms[arm].runs.values()]
            for arm in (row["arm"], "erm")
        )
        assert float(row["difference"]) == pytest.approx((sum(ours) - sum(theirs)) / 5)
        assert float(row["p"]) == pytest.approx(min(1, 8 * float(row["p_unadjusted"])))
    assert sum(int(row["images"]) for row in rows) == 2 * 600
    bold = {(int(row["class"]), row["arm"]) for row in rows if float(row["p"]) <= 0.05}
    assert listing.bold == {(label, listing.header.index(arm)) for label, arm in bold}
