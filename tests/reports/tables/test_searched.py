import json
from dataclasses import replace
from pathlib import Path

import pytest

from reports.pages.build import draft_report, report_table
from reports.tables.searched import gather, points_table, winner_table
from reports.tables.table import Table, tabulate
from sweeps.state.results import RunResult
from sweeps.study.search import SelectionRule
from sweeps.study.study import Study
from tests.reports.synthetic_search import HISTORY, result_of, search_study


def test_points_are_ranked_by_mean_and_the_caption_states_the_selection_rule(
    grown: Study, grown_results: tuple[RunResult, ...]
) -> None:
    table = points_table(gather(grown, grown_results, HISTORY))
    assert [row[0] for row in table.cells] == [
        "point 1", "point 3", "point 0", "point 2", "erm", "uniform",
    ]  # fmt: skip
    states = {row[0]: row[-1] for row in table.cells}
    assert states["point 1"] == "complete, selected"
    assert states["point 2"] == "pruned"
    assert {row[0]: row[4] for row in table.cells}["point 2"] == "2/2"
    for said in (
        "val-mean",
        "4 of 4 points (1 pruned) with the sampler tpe",
        "only the confirmation",
    ):
        assert said in table.caption
    difference = next(r for r in table.records if r["arm"] == "point 1")["difference"]
    assert difference == pytest.approx(0.18 - 0.225)


def test_a_winner_is_shown_with_its_values_and_the_number_of_tied_points(
    grown: Study, grown_results: tuple[RunResult, ...]
) -> None:
    for tied, said in (
        ((), "no other point has"),
        ((3,), "1 other point has"),
        ((0, 3), "2 other points have"),
    ):
        points = tuple(
            replace(point, objectives=(0.18,)) if point.number in tied else point
            for point in HISTORY.points
        )
        searched = gather(grown, grown_results, replace(HISTORY, points=points))
        winner = searched.winner
        assert winner is not None
        values = ", ".join(f"{path} = {value:g}" for path, value in winner.values.items())
        assert searched.won == f"{winner.arm} has {values}; {said} the same mean"
        table = points_table(searched)
        assert searched.won in table.caption
        assert searched.won in searched.selection("test/error").found
        assert [row["arm"] for row in table.records if row["selected"]] == [winner.arm]
        names = {f"point {number}" for number in (1, *tied)} - {winner.arm}
        assert {row["arm"] for row in table.records if row["tied"]} == names


def test_a_switch_at_the_last_epoch_is_marked_as_having_no_effect(
    grown: Study, grown_results: tuple[RunResult, ...]
) -> None:
    points = tuple(
        replace(point, values={**point.values, "mix.switch_epoch": 10})
        if point.number == 1
        else point
        for point in HISTORY.points
    )
    searched = gather(grown, grown_results, replace(HISTORY, points=points))
    assert "mix.law.alpha = 2, mix.switch_epoch = 10 (has no effect); no" in searched.won
    assert "at random until 10 points were complete" in points_table(searched).caption


def test_the_winner_is_compared_with_each_arm_only_on_confirmation_seeds(
    grown: Study, grown_results: tuple[RunResult, ...]
) -> None:
    searched = gather(grown, grown_results, HISTORY)
    main = confirmed_table(grown, grown_results)
    table = winner_table(searched, main)
    assert [record["baseline"] for record in table.records] == ["erm", "uniform"]
    assert [record["n"] for record in table.records] == [4, 4]
    assert table.records[1]["difference"] == pytest.approx(0.18 - 0.2)


def test_a_comparison_has_one_adjusted_p_in_both_tables(
    grown: Study, grown_results: tuple[RunResult, ...]
) -> None:
    main = confirmed_table(grown, grown_results)
    listing = winner_table(gather(grown, grown_results, HISTORY), main)
    assert main.family.size == 3
    (against_erm,) = (record for record in listing.records if record["baseline"] == "erm")
    row = main.rows[2]
    assert row.compared is not None
    assert against_erm["p"] == row.compared.p
    assert "3 comparisons" in main.caption
    assert "3 comparisons" in listing.caption


def confirmed_table(grown: Study, grown_results: tuple[RunResult, ...]) -> Table:
    confirmed = grown.confirmation()
    assert confirmed is not None
    originals = grown.confirmed()
    results = [
        replace(r, run=replace(r.run, arm=originals[r.run.arm]))
        for r in grown_results
        if r.run.arm in originals
    ]
    selection = gather(grown, grown_results, HISTORY).selection("test/error")
    return tabulate(confirmed, results, selection=selection)


def test_figures_of_a_confirmation_do_not_claim_arms_fixed_in_advance(
    grown: Study, grown_results: tuple[RunResult, ...], tmp_path: Path
) -> None:
    draft = draft_report(grown, grown_results, data_checksums={}, command="x", history=HISTORY)
    assert draft.table == report_table(grown, grown_results, history=HISTORY)
    draft.write(tmp_path / "r")
    for name in ("learning_curves", "final_values"):
        caption = (tmp_path / "r" / "figures" / f"{name}.txt").read_text()
        assert "point 1 is the best of 4 points tried" in caption
        assert "All arms" not in caption


def test_points_on_the_pareto_front_of_several_objectives_are_marked(grown: Study) -> None:
    points = tuple(
        replace(p, objectives=(*p.objectives, 1 - p.objectives[0])) if p.objectives else p
        for p in HISTORY.points
    )
    history = replace(HISTORY, points=points)
    study = search_study("val/error", "val/nll").grown(points)
    results = [result_of(run) for run in study.runs()]
    searched = gather(study, results, history)
    assert {row[0] for row in points_table(searched).cells if "*" in row} == {
        "point 0", "point 1", "point 3",
    }  # fmt: skip


def test_the_report_of_a_search_begins_with_the_confirmation(
    grown: Study, grown_results: tuple[RunResult, ...], tmp_path: Path
) -> None:
    report = draft_report(
        grown, grown_results, data_checksums={}, command="x", history=HISTORY
    ).write(tmp_path / "r")
    assert [row.arm for row in report.table.rows] == ["erm", "uniform", "point 1"]
    assert report.table.metric == "test/error"
    assert report.table.header[-1] == "points tried"
    assert [cells[-1] for cells in report.table.cells] == ["1", "1", "4"]
    assert "Selection rule val-mean" in report.table.caption
    assert "The selected point 1 is the best of 4 points tried" in report.screen
    written = {path.relative_to(tmp_path / "r").as_posix() for path in report.files}
    assert {
        "tables/points.csv",
        "tables/points.md",
        "tables/confirmed.csv",
        "figures/search_map.svg",
    } <= written
    assert "Best points" in (tmp_path / "r" / "report.html").read_text()


def test_a_search_without_points_has_a_report(tmp_path: Path) -> None:
    study = search_study()
    report = draft_report(
        study,
        [],
        data_checksums={},
        command="x",
        history=replace(HISTORY, points=()),
    ).write(tmp_path / "r")
    assert [row.arm for row in report.table.rows] == ["erm", "uniform"]
    assert report.table.metric == "val/error"


@pytest.mark.parametrize(
    "ended",
    [
        "used up its budget of 2 hours, after 4 points",
        "ended after 4 points, because its space has no other points",
    ],
)
def test_the_early_end_of_a_search_is_in_caption_and_provenance(
    grown: Study, grown_results: tuple[RunResult, ...], tmp_path: Path, ended: str
) -> None:
    history = replace(HISTORY, ended=ended)
    report = draft_report(
        grown, grown_results, data_checksums={}, command="x", history=history
    ).write(tmp_path / "r")
    assert f"The search {ended}." in report.markdown
    assert json.loads((tmp_path / "r" / "provenance.json").read_text())["search"] == {
        "sampler": "tpe",
        "sampler_seed": 0,
        "points_wanted": 4,
        "points": {"complete": 3, "pruned": 1},
        "ended": ended,
    }


@pytest.mark.parametrize("rule", ["val-mean", "val-1se"])
def test_points_with_runs_lost_from_the_store_are_reported_as_missing(
    grown: Study, grown_results: tuple[RunResult, ...], tmp_path: Path, rule: SelectionRule
) -> None:
    assert grown.search is not None
    strategy = replace(grown.search.strategy, select=rule)
    study = replace(grown, search=replace(grown.search, strategy=strategy))
    lost = {"point 0", "point 1"}
    results = [result for result in grown_results if result.run.arm not in lost]
    report = draft_report(study, results, data_checksums={}, command="x", history=HISTORY).write(
        tmp_path / "r"
    )
    rows = (tmp_path / "r" / "tables/points.md").read_text().splitlines()
    assert all(any(f"| {arm} " in row and " 0/3 " in row for row in rows) for arm in lost)
    assert "search_history" in {path.stem for path in report.files}


def test_the_interval_of_a_point_stays_within_the_bounds_of_its_metric(
    grown: Study, grown_results: tuple[RunResult, ...]
) -> None:
    searched = gather(grown, grown_results, HISTORY)
    at_zero = {"val/error": {"point 1": {0: 0.0, 1: 0.01, 2: 0.0}, "point 3": {0: 0.0, 1: 0.0}}}
    for arm in ("point 1", "point 3"):
        summary = replace(searched, values=at_zero).summary(arm)
        assert summary is not None
        assert summary.ci_low is not None
        assert summary.ci_high is not None
        assert 0 <= summary.ci_low <= summary.mean < summary.ci_high < 0.1
