from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.drawn import draw, numbers_of
from tests.reports.synthetic import AT_A_BOUND, at_a_bound, finish, make_study


def test_numbers_of_the_curves_are_the_summary_of_every_epoch(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    lines = numbers_of(draw(study, results)["learning_curves"])
    assert len(lines) == 2 * 3 * 10
    (last,) = [
        line
        for line in lines
        if (line["metric"], line["arm"], line["epoch"]) == ("test/error", "uniform", "10")
    ]
    summary = tabulate(study, results).rows[2].summaries["test/error"]
    assert (float(last["mean"]), float(last["ci_low"])) == (summary.mean, summary.ci_low)
    assert sum(float(last[f"seed_{seed}"]) for seed in range(5)) / 5 == pytest.approx(summary.mean)


@pytest.mark.parametrize("errors", AT_A_BOUND)
def test_the_band_of_the_last_epoch_ends_at_the_limits_of_the_table(
    errors: Sequence[float],
) -> None:
    study = make_study()
    results = at_a_bound(study, errors)
    lines = numbers_of(draw(study, results)["learning_curves"])
    (last,) = [
        line
        for line in lines
        if (line["metric"], line["arm"], line["epoch"]) == ("test/error", "erm", "10")
    ]
    summary = tabulate(study, results).rows[0].summaries["test/error"]
    assert (float(last["ci_low"]), float(last["ci_high"])) == (summary.ci_low, summary.ci_high)


def test_an_unfinished_seed_is_drawn_thin_and_left_out_of_the_mean() -> None:
    study = make_study()
    results = tuple(
        finish(run, epochs=3 if (run.arm, run.seed) == ("erm", 0) else 10) for run in study.runs()
    )
    lines = numbers_of(draw(study, results)["learning_curves"])
    assert (lines[0]["n"], lines[0]["seed_0"] != "", lines[3]["seed_0"]) == ("4", True, "")


@pytest.mark.parametrize("num_arms", [2, 10])
def test_each_metric_of_a_probe_is_drawn_in_a_panel_or_named_in_the_caption(num_arms: int) -> None:
    study = make_study(arms=("erm", *(f"arm{index}" for index in range(1, num_arms))))
    results = []
    for result in map(finish, study.runs()):
        records = tuple(
            replace(record, metrics={**record.metrics, "train/weight_norm": 2.0, "train/own": 1.0})
            for record in result.records
        )
        results.append(replace(result, stage=replace(result.stage, records=records)))
    figure = draw(study, tuple(results))["learning_curves"]
    drawn = {line["metric"] for line in numbers_of(figure)}
    if num_arms == 2:
        assert drawn == {"test/error", "train/excess_loss", "train/weight_norm", "train/own"}
    else:
        assert drawn == {"test/error"}
        assert "no panel: excess training loss, weight norm, train/own" in figure.caption
