import csv
import io
import re
from collections.abc import Mapping
from typing import Any

import pytest
import scipy.stats
from synthetic import finish, make_study

from reports.metrics import METRICS
from reports.runs import arrange, run_records, runs_csv
from reports.tables import tabulate
from sweeps.results import RunResult
from sweeps.study import Study


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def ended(study: Study, ends: Mapping[tuple[str, int], Mapping[str, Any]]) -> list[RunResult]:
    return [finish(run, **ends.get((run.arm, run.seed), {})) for run in study.runs()]


def test_each_arm_is_summarised_and_compared_with_erm(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    table = tabulate(study, results)
    errors = {
        arm: [r.records[-1].metrics["test/error"] for r in by_seed.values()]
        for arm, by_seed in arrange(study, results).items()
    }
    p = scipy.stats.ttest_rel(errors["uniform"], errors["erm"]).pvalue
    row = table.rows[2]
    assert table.baseline == "erm"
    assert row.summaries["test/error"].mean == pytest.approx(sum(errors["uniform"]) / 5)
    assert row.comparison is not None
    assert row.comparison.p == pytest.approx(p)
    assert row.p_holm == pytest.approx(2 * p)
    assert table.rows[0].comparison is None


def test_the_baseline_is_the_first_arm_where_there_is_no_erm() -> None:
    study = make_study(arms=("uniform", "midpoint"))
    assert tabulate(study, []).baseline == "uniform"


def test_markdown_shows_percent_interval_seeds_difference_and_bold(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    lines = tabulate(study, results, made_with="cpu, torch 2").markdown().splitlines()
    assert re.match(r"\| arm +\| test error, % +\| n +\| minus erm, points ", lines[0])
    assert re.match(r"\| erm +\| 22\.58 ± 0\.49 +\| 5/5 \|", lines[2])
    assert "| **uniform** | **19.64 ± 1.48** | 5/5 | -2.94 [-3.92, -1.96] " in lines[4]
    assert len({len(line) for line in lines[:5]}) == 1


def test_the_caption_says_what_the_numbers_are(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    caption = tabulate(study, results, made_with="cpu, torch 2").caption
    for part in (
        "Fashion-MNIST",
        "10 000 test images",
        "95 % t interval over seeds 0-4",
        "selection rule none (arms fixed in advance, last epoch",
        "Holm over 2 comparisons, intervals unadjusted",
        "a difference of 0.81 points (midpoint) or 1.62 points (uniform) is found 4 times in 5",
        "cpu, torch 2",
    ):
        assert part in caption


def test_a_missing_seed_shows_as_four_of_five_and_is_listed() -> None:
    study = make_study()
    failed = {"epochs": 3, "failure": "Traceback\n  line\nRuntimeError: no memory"}
    table = tabulate(study, ended(study, {("uniform", 1): failed}))
    row = table.rows[2]
    assert (row.seeds, row.is_best, row.summaries["test/error"].n) == ("4/5", False, 4)
    assert row.comparison is not None
    assert row.comparison.n == 4
    assert "(n = 4)" in table.cells[2][3]
    assert "- uniform seed 1: failed, 3/10 epochs: RuntimeError: no memory" in table.markdown()


def test_an_arm_that_lacks_a_seed_is_never_bold_though_its_mean_is_lowest() -> None:
    study = make_study()
    table = tabulate(study, ended(study, {("uniform", 1): {"epochs": 3}}))
    assert [row.is_best for row in table.rows] == [False, True, False]


def test_a_diverged_seed_keeps_the_survivors_mean_out() -> None:
    study = make_study()
    diverged = {"epochs": 4, "failure": "loss is nan", "kind": "diverged"}
    table = tabulate(study, ended(study, {("uniform", 2): diverged}))
    row = table.rows[2]
    assert row.seeds == "4/5, 1 diverged"
    assert row.summaries == {}
    assert row.comparison is None
    assert rows_of(table.csv())[2]["test/error_mean"] == ""
    assert "Holm over 1 comparison," in table.caption


def test_a_dagger_marks_what_is_not_told_apart_from_the_best() -> None:
    study = make_study()
    near = {
        ("midpoint", seed): {"error": 0.20 + offset}
        for seed, offset in enumerate((0.01, -0.02, 0.02, -0.01, 0.0))
    }
    table = tabulate(study, ended(study, near))
    assert [row.is_close for row in table.rows] == [False, True, False]
    assert table.cells[1][1].endswith("†")
    assert "†: not told apart" in table.caption


def test_one_seed_has_a_mean_and_dashes() -> None:
    study = make_study(seeds=(7,))
    table = tabulate(study, ended(study, {}))
    assert table.cells[1][1:6] == ("21.90 ± —", "1/1", "-1.00", "—", "—")
    assert not any(row.is_best for row in table.rows)
    assert "one seed (7)" in table.caption


def test_an_empty_study_still_has_a_table() -> None:
    table = tabulate(make_study(), [])
    assert [cells[2] for cells in table.cells] == ["0/5"] * 3
    assert len(table.unfinished) == 15
    assert "\\toprule" in table.latex()
    assert rows_of(table.csv())[0]["n"] == "0"


def test_the_sign_flip_p_is_printed_from_six_seeds_on() -> None:
    study = make_study(seeds=tuple(range(6)))
    table = tabulate(study, ended(study, {}))
    assert "sign-flip p (Holm)" in table.header
    assert table.rows[1].sign_flip_p_holm == pytest.approx(2 * 2 / 2**6)


def test_the_order_of_results_does_not_move_a_byte(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    first, second = tabulate(study, results), tabulate(study, results[::-1])
    assert (first.markdown(), first.csv(), first.latex()) == (
        second.markdown(),
        second.csv(),
        second.latex(),
    )
    assert runs_csv(study, results) == runs_csv(study, results[::-1])


def test_results_of_another_study_are_refused(results: tuple[RunResult, ...]) -> None:
    with pytest.raises(ValueError, match=r"results are runs of the study.*uniform"):
        tabulate(make_study(arms=("erm", "midpoint")), results)


def test_arms_measured_on_different_data_are_not_compared(study: Study) -> None:
    other = make_study().arms["midpoint"]
    data = type(other.data)(name="cifar10", views="concat")
    arms = {**study.arms, "midpoint": type(other)(data=data, epochs=10, batch_size=100)}
    mixed = Study(name="mixed", description="", arms=arms, seeds=(0, 1), source="")
    table = tabulate(mixed, ended(mixed, {}))
    assert all(row.comparison is None and not row.is_best for row in table.rows)
    assert "different data" in table.caption


def test_table_csv_starts_with_its_contract_and_keeps_every_digit(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    table = tabulate(study, results)
    text = table.csv()
    assert text.startswith(
        "arm,n,seeds_expected,test/error_mean,test/error_sd,test/error_ci_low,test/error_ci_high,"
    )
    assert float(rows_of(text)[2]["test/error_sd"]) == table.rows[2].summaries["test/error"].sd


def test_runs_csv_has_a_row_per_run_with_what_varies_and_the_final_metrics() -> None:
    study = make_study()
    results = ended(study, {("midpoint", 1): {"epochs": 3}})
    text = runs_csv(study, results)
    assert text.startswith("run_key,arm,seed,epochs,mix.law,mix.law.alpha,test/error,test/nll,")
    rows = rows_of(text)
    assert [(row["arm"], row["seed"]) for row in rows[:6]] == [
        *(("erm", str(seed)) for seed in range(5)),
        ("midpoint", "0"),
    ]
    stopped, whole = rows[6], rows[10]
    assert (stopped["epochs"], stopped["outcome"], stopped["test/error"]) == ("3", "partial", "")
    assert (whole["mix.law"], whole["mix.law.alpha"]) == ("beta", "1.0")
    (final,) = [r for r in results if (r.run.arm, r.run.seed) == ("uniform", 0)]
    assert float(whole["test/error"]) == final.records[-1].metrics["test/error"]
    assert whole["run_key"] == final.run.key


def test_a_study_over_epochs_keeps_both_columns() -> None:
    study = make_study()
    config = study.arms["erm"]
    longer = type(config)(data=config.data, epochs=20, batch_size=100)
    study = Study(
        name="long", description="", arms={"erm": config, "long": longer}, seeds=(0,), source=""
    )
    record = run_records(study, [finish(run) for run in study.runs()])[1]
    assert (record["epochs"], record["epochs_expected"], record["outcome"]) == (10, 20, "partial")


def test_a_cell_never_starts_a_formula() -> None:
    study = make_study(arms=("erm", "=1+1"))
    table = tabulate(study, ended(study, {}))
    assert rows_of(table.csv())[1]["arm"] == "'=1+1"
    assert rows_of(runs_csv(study, []))[-1]["arm"] == "'=1+1"


def test_markup_in_names_is_escaped() -> None:
    study = make_study(arms=("erm", "a|b", "50%_x&y"))
    table = tabulate(study, ended(study, {}))
    assert "| a\\|b " in table.markdown().replace("**", "")
    assert "50\\%\\_x\\&y" in table.latex()


def test_latex_is_a_whole_booktabs_table(study: Study, results: tuple[RunResult, ...]) -> None:
    text = tabulate(study, results).latex()
    assert re.findall(r"\\(?:top|mid|bottom)rule", text) == [
        "\\toprule",
        "\\midrule",
        "\\bottomrule",
    ]
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    body = text.split("\\toprule")[1].split("\\bottomrule")[0]
    lines = [line for line in body.splitlines() if line.endswith("\\\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {7}
    assert text.count("{") == text.count("}")
    assert text.isascii()
    assert "\\textbf{uniform} & \\textbf{19.64 $\\pm$ 1.48}" in text


def test_known_metrics_have_distinct_headings() -> None:
    headings = [metric.heading for metric in METRICS.values()]
    assert len(set(headings)) == len(headings)
