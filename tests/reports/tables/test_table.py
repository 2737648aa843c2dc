import io
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from mixup_core.config.written_forms import flatten
from reports.numbers.runs import runs_csv
from reports.numbers.spelling import spell_p
from reports.tables.table import tabulate
from sweeps.study.readouts import MeanOfLast
from sweeps.study.study import Run
from tests.reports.decay import decay_study, decayed
from tests.reports.synthetic import FINISHED, SMALL, ended, finish, make_study, rows_of, with_oracle


def test_markdown_shows_percent_interval_seeds_difference_and_bold() -> None:
    lines = tabulate(SMALL, FINISHED, made_with="cpu, torch 2").markdown().splitlines()
    assert re.match(r"\| arm +\| test error, % +\| n +\| minus erm, points ", lines[0])
    assert re.match(r"\| erm +\| 22\.58 ± 0\.49 +\| 5/5 \|", lines[2])
    assert "| **uniform** | **19.64 ± 1.48** | 5/5 | -2.94 [-4.18, -1.70] " in lines[4]
    assert len({len(line) for line in lines[:5]}) == 1


def test_a_missing_seed_shows_as_four_of_five_and_is_listed() -> None:
    failed = {"epochs": 3, "failure": "Traceback\n  line\nRuntimeError: no memory"}
    table = tabulate(SMALL, ended(SMALL, {("uniform", 1): failed}))
    row = table.rows[2]
    assert (row.seeds, row.is_best, row.summaries["test/error"].n) == ("4/5", False, 4)
    assert row.compared.comparison.n == 4
    assert "(n = 4)" in table.cells[2][3]
    assert "- uniform seed 1: failed, 3/10 epochs: RuntimeError: no memory" in table.markdown()


def test_latex_is_a_whole_booktabs_table() -> None:
    text = tabulate(SMALL, FINISHED).latex()
    rules = ["\\toprule", "\\midrule", "\\bottomrule"]
    assert re.findall(r"\\(?:top|mid|bottom)rule", text) == 2 * rules
    ends = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    table = [("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table")]
    assert ends == 2 * table
    bodies = [part.split("\\bottomrule")[0] for part in text.split("\\toprule")[1:]]
    lines = [[line for line in body.splitlines() if line.endswith("\\\\")] for body in bodies]
    columns = [{len(re.findall(r"(?<!\\)&", line)) + 1 for line in part} for part in lines]
    assert columns == [{5}, {4}]
    assert text.count("{") == text.count("}")
    assert text.isascii()
    assert "\\textbf{uniform} & \\textbf{19.64 $\\pm$ 1.48}" in text


def test_differences_are_in_the_unit_of_the_metric_and_more_may_be_better(decay: None) -> None:
    study = decay_study()
    table = tabulate(study, [decayed(run) for run in study.runs()])
    assert table.header[:4] == ("arm", "margin, nats", "n", "minus rate 1, nats")
    assert table.header[6:] == ("norm",)
    assert [row.is_best for row in table.rows] == [False, True]
    assert "Bold: the highest mean" in table.caption


LATEX = shutil.which("pdflatex")
ARTICLE = r"""\documentclass{article}
\usepackage{booktabs}
\begin{document}
\input{table.tex}
See tables~\ref{tab:small} and~\ref{tab:small-more}.
\end{document}
"""
GRID = ("erm", "alpha=0.2 switch_epoch=100", "alpha=0.2 switch_epoch=200", "50%_x&y^~ 1")


@pytest.mark.skipif(LATEX is None, reason="NOT CHECKED: pdflatex is not installed")
@pytest.mark.parametrize(
    ("arms", "num_seeds", "baseline"),
    [
        (("erm", "midpoint", "uniform"), 5, "erm"),
        (("erm", "midpoint", "uniform"), 20, "erm"),
        (GRID, 20, "erm"),
        (GRID, 20, GRID[1]),
    ],
)
def test_latex_tables_compile_within_a_column_of_article(
    arms: tuple[str, ...], num_seeds: int, baseline: str, tmp_path: Path
) -> None:
    study = replace(make_study(arms=arms, seeds=tuple(range(num_seeds))), baseline=baseline)
    results = [*ended(study, {})][:-1]
    (tmp_path / "table.tex").write_text(tabulate(study, results).latex())
    (tmp_path / "paper.tex").write_text(ARTICLE)
    for _ in range(2):  # the second finds the references
        done = subprocess.run(
            [LATEX, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
    assert "undefined" not in done.stdout
    assert "Output written on paper.pdf" in done.stdout


def test_a_table_by_another_readout_follows_from_runs_csv_and_names_the_readout() -> None:
    study = replace(SMALL, readout=MeanOfLast(evaluations=4))
    table = tabulate(study, FINISHED)
    runs = pd.read_csv(io.StringIO(runs_csv(study, FINISHED)))
    error = runs[runs["arm"] == "uniform"]["test/error"]
    assert table.rows[2].summaries["test/error"].mean == pytest.approx(error.mean())
    last = tabulate(SMALL, FINISHED).rows[2].summaries["test/error"]
    assert error.mean() > last.mean
    assert "mean of the last 4 evaluations" in table.caption
    assert "last epoch" not in table.caption


def test_equal_arms_share_a_row_and_one_test() -> None:
    arms = {**SMALL.arms, "plain": SMALL.arms["erm"], "again": SMALL.arms["uniform"]}
    study = replace(SMALL, arms=arms)
    table = tabulate(study, [finish(run, error_of(run)) for run in study.runs()])
    assert [cells[0] for cells in table.cells] == ["erm = plain", "midpoint", "uniform = again"]
    assert table.family.size == 2
    assert (
        "Arms that compute exactly the same share a row: erm = plain, uniform = again."
        in table.caption
    )
    rows = rows_of(table.csv())
    assert [row["arm"] for row in rows] == ["erm", "midpoint", "uniform", "plain", "again"]
    assert [row["equal_to"] for row in rows] == ["", "", "", "erm", "uniform"]
    assert rows[2]["p"] == rows[4]["p"]


def error_of(run: Run) -> float:
    law = flatten(run.config)["mix.law"]
    return {"erm": 0.22, "midpoint": 0.21, "beta": 0.2}[law] + 0.001 * run.seed**2 * len(law)


def test_an_oracle_is_marked_and_is_never_the_best_arm() -> None:
    study = with_oracle(SMALL, "uniform")
    table = tabulate(study, [finish(run) for run in study.runs()])
    assert [row[0] for row in table.cells] == ["erm", "midpoint", "uniform [oracle]"]
    _, midpoint, uniform = table.rows
    assert uniform.summaries["test/error"].mean < midpoint.summaries["test/error"].mean
    assert (uniform.is_best, uniform.is_close, midpoint.is_best) == (False, False, True)
    assert "[oracle]: the arm or its teacher was trained on the test images" in table.caption
    assert [record["tags"] for record in table.listing.records] == ["", "", "oracle"]
    plain = tabulate(SMALL, FINISHED)
    assert "oracle" not in plain.caption + plain.csv() + plain.markdown()


@pytest.mark.parametrize("num_seeds", [2, 5, 8])
def test_the_csv_has_the_p_and_the_interval_that_the_table_prints(num_seeds: int) -> None:
    study = make_study(seeds=tuple(range(num_seeds)))
    table = tabulate(study, ended(study, {}))
    cells = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.cells}
    for row in rows_of(table.csv())[1:]:
        printed = cells[row["arm"]]
        low, high = (100 * float(row[f"difference_ci_{end}"]) for end in ("low", "high"))
        digits = 1 if num_seeds == 2 else 2  # the spread of two seeds says little
        assert printed["minus erm, points"].endswith(f" [{low:.{digits}f}, {high:.{digits}f}]")
        assert printed["p"] == spell_p(float(row["p"]))
        if num_seeds > 2:
            low, high = (float(row[f"d_ci_{end}"]) for end in ("low", "high"))
            assert printed["d"].endswith(f" [{low:.1f}, {high:.1f}]")
        if num_seeds > 5:
            assert printed["sign-flip p"] == spell_p(float(row["sign_flip_p"]))
