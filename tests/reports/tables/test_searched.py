import re
from dataclasses import replace
from pathlib import Path

import pytest

from mixup_core.config.building import with_values
from reports.pages.build import draft_report, report_classes, report_table
from reports.tables.head_to_head import StudyArm, head_to_head
from reports.tables.searched import gather, points_table, winner_table
from sweeps.study.search import name_of_confirmation
from sweeps.study.study import Variant
from tests.reports.synthetic import claim, rows_of, with_oracle
from tests.reports.synthetic_predictions import reader
from tests.reports.synthetic_search import (
    GROWN,
    GROWN_RESULTS,
    HISTORY,
    PARETO,
    result_of,
    search_study,
)


def test_points_are_ranked_by_mean_and_the_caption_states_the_selection_rule() -> None:
    table = points_table(gather(GROWN, GROWN_RESULTS, HISTORY))
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
    row = next(r for r in table.records if r["arm"] == "point 1")
    assert row["difference"] == pytest.approx(0.18 - 0.225)
    sides = (StudyArm(study=GROWN, arm=arm, results=GROWN_RESULTS) for arm in ("point 1", "erm"))
    alone = head_to_head(*sides, "val/error").comparison
    ends = row["difference_ci_low_unadjusted"], row["difference_ci_high_unadjusted"]
    assert ends == (alone.ci_low, alone.ci_high) != (None, None)


def test_an_oracle_is_marked_beside_the_winner() -> None:
    study = with_oracle(GROWN, name_of_confirmation("erm"))
    searched = gather(study, GROWN_RESULTS, HISTORY)
    table = report_table(study, GROWN_RESULTS, history=HISTORY)
    text = winner_table(searched, table).markdown()
    assert "erm [oracle]" in text
    assert not re.findall(r".*\berm\b(?! \[oracle\]).*", text)


def test_points_are_not_compared_with_an_arm_of_other_validation_images() -> None:
    config = with_values(GROWN.arms["erm"], {"data.val_size": 1000})
    study = replace(GROWN, arms={**GROWN.arms, "erm": config})
    table = points_table(gather(study, GROWN_RESULTS, HISTORY))
    assert {row["difference"] for row in table.records if row["arm"] != "erm"} == {None}


def test_a_winner_is_shown_with_its_values_and_the_number_of_tied_points() -> None:
    for tied, said in (
        ((), "no other point has"),
        ((3,), "1 other point has"),
        ((0, 3), "2 other points have"),
    ):
        points = tuple(
            replace(point, objectives=(0.18,)) if point.number in tied else point
            for point in HISTORY.points
        )
        searched = gather(GROWN, GROWN_RESULTS, replace(HISTORY, points=points))
        winner = searched.winner
        values = ", ".join(f"{path} = {value:g}" for path, value in winner.values.items())
        assert searched.won == f"{winner.arm} has {values}; {said} the same mean"
        table = points_table(searched)
        assert searched.won in table.caption
        assert searched.won in searched.selection("test/error").found
        assert [row["arm"] for row in table.records if row["selected"]] == [winner.arm]
        names = {f"point {number}" for number in (1, *tied)} - {winner.arm}
        assert {row["arm"] for row in table.records if row["tied"]} == names


def test_the_winner_is_compared_with_each_arm_on_confirmation_seeds_with_one_adjusted_p() -> None:
    searched = gather(GROWN, GROWN_RESULTS, HISTORY)
    main = report_table(GROWN, GROWN_RESULTS, history=HISTORY)
    table = winner_table(searched, main)
    assert [record["baseline"] for record in table.records] == ["erm", "uniform"]
    assert [record["n"] for record in table.records] == [4, 4]
    assert table.records[1]["difference"] == pytest.approx(0.18 - 0.2)
    assert main.family.size == 3
    assert table.records[0]["p"] == main.rows[2].compared.p
    assert "3 comparisons" in main.caption
    assert "3 comparisons" in table.caption


def test_two_arms_are_compared_by_the_headline_of_the_search_or_its_confirmation() -> None:
    for names, metric in ((str, "val/error"), (name_of_confirmation, "test/error")):
        first, second = (
            StudyArm(study=GROWN, arm=names(arm), results=GROWN_RESULTS)
            for arm in ("uniform", "erm")
        )
        assert first.headline == metric
        assert head_to_head(first, second, metric).comparison.difference == pytest.approx(-0.025)


def test_a_copy_of_an_arm_is_noted_in_the_confirmation() -> None:
    first, copy = map(name_of_confirmation, ("erm", "uniform"))
    results = tuple(
        replace(result_of(replace(run, arm=first)), run=run) if run.arm == copy else result
        for result in GROWN_RESULTS
        for run in (result.run,)
    )
    caption = report_table(GROWN, results, history=HISTORY).caption
    assert "The runs of uniform and erm have equal results to the last digit" in caption


def test_points_on_the_pareto_front_of_several_objectives_are_marked() -> None:
    study = search_study("val/error", "val/nll").grown(PARETO)
    history = replace(HISTORY, points=PARETO)
    searched = gather(study, [result_of(run) for run in study.runs()], history)
    assert {row[0] for row in points_table(searched).cells if "*" in row} == {
        "point 0", "point 1", "point 3",
    }  # fmt: skip


def test_a_run_without_the_objective_has_no_value() -> None:
    lost = GROWN_RESULTS[0]
    *records, last = lost.records
    records.append(replace(last, metrics={}))
    lost = replace(lost, stage=replace(lost.stage, records=tuple(records)))
    found, whole = (
        gather(GROWN, results, HISTORY).values["val/error"][lost.run.arm]
        for results in ((lost, *GROWN_RESULTS[1:]), GROWN_RESULTS)
    )
    assert found == {seed: value for seed, value in whole.items() if seed != lost.run.seed}


@pytest.mark.usefixtures("undrawn")
def test_the_report_of_a_search_begins_with_the_confirmation(tmp_path: Path) -> None:
    report = draft_report(
        GROWN, GROWN_RESULTS, data_checksums={}, command="x", history=HISTORY
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
    } <= written
    assert "Best points" in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_arms_of_variants_and_teachers_are_confirmed_beside_the_tables(tmp_path: Path) -> None:
    plain = search_study()
    label, beside = "epochs=5", {arm: f"{arm} epochs=5" for arm in plain.arms}
    extra = {beside[arm]: replace(config, epochs=5) for arm, config in plain.arms.items()}
    study = replace(
        plain,
        arms={**plain.arms, **extra},
        beside=tuple(extra),
        variants=(Variant(label=label, arms=beside),),
        claims=(claim("less"),),
    ).grown(HISTORY.points, HISTORY.points[1])
    results = tuple(map(result_of, study.runs()))
    report = draft_report(
        study, results, data_checksums={}, command="x", history=HISTORY, predictions=reader()
    ).write(tmp_path / "r")
    for name in ("points", "confirmed", "seeds", "calibration", "ensembles", "classes"):
        assert label not in (tmp_path / "r" / f"tables/{name}.csv").read_text()
    (verdict,) = rows_of((tmp_path / "r/tables/verdicts.csv").read_text())
    assert (verdict["n"], label in verdict["variants"]) == ("4", True)
    assert [row.arm for row in report.table.rows] == ["erm", "uniform", "point 1"]
    classes = report_classes(study, results, history=HISTORY, predictions=reader())
    assert classes.csv() == (tmp_path / "r/tables/classes.csv").read_text()


@pytest.mark.usefixtures("undrawn")
def test_claims_of_a_search_wait_for_its_confirmation(tmp_path: Path) -> None:
    study = replace(search_study(), claims=(claim("less", metric="train/loss"),))
    for grown, n in (
        (study.grown(HISTORY.points), "0"),
        (study.grown(HISTORY.points, HISTORY.points[1]), "4"),
    ):
        results = tuple(map(result_of, grown.runs()))
        report = draft_report(grown, results, data_checksums={}, command="x", history=HISTORY)
        folder = report.write(tmp_path / n).folder
        (verdict,) = rows_of((folder / "tables/verdicts.csv").read_text())
        assert (verdict["n"], verdict["verdict"] == "unfinished") == (n, n == "0")
