import re

import pytest
from decay import decay_study, decayed
from synthetic import ended, make_study, rows_of

from reports.runs import runs_csv
from reports.tables import tabulate
from sweeps.results import RunResult
from sweeps.study import Study


def test_markdown_shows_percent_interval_seeds_difference_and_bold(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    lines = tabulate(study, results, made_with="cpu, torch 2").markdown().splitlines()
    assert re.match(r"\| arm +\| test error, % +\| n +\| minus erm, points ", lines[0])
    assert re.match(r"\| erm +\| 22\.58 ± 0\.49 +\| 5/5 \|", lines[2])
    assert "| **uniform** | **19.64 ± 1.48** | 5/5 | -2.94 [-3.92, -1.96] " in lines[4]
    assert len({len(line) for line in lines[:5]}) == 1


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


def test_table_csv_starts_with_its_contract_and_keeps_every_digit(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    table = tabulate(study, results)
    text = table.csv()
    assert text.startswith(
        "arm,n,seeds_expected,test/error_mean,test/error_sd,test/error_ci_low,test/error_ci_high,"
    )
    assert float(rows_of(text)[2]["test/error_sd"]) == table.rows[2].summaries["test/error"].sd


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


def test_differences_are_in_the_unit_of_the_metric_and_more_may_be_better(decay: None) -> None:
    study = decay_study()
    table = tabulate(study, [decayed(run) for run in study.runs()])
    assert table.header[:4] == ("arm", "margin, nats", "n", "minus rate 1, nats")
    assert table.header[6:] == ("norm",)
    assert [row.is_best for row in table.rows] == [False, True]
    assert "bold: highest mean" in table.caption


def test_an_unknown_metric_is_a_plain_number_though_it_ends_in_error() -> None:
    metric = make_study().problem.metric("test/new_error")
    assert (metric.heading, metric.scale) == ("test/new_error", 1.0)
