"""Terminal table: columns that do not fit are named, and all others are complete."""

import pytest

from mixsweep.cli.terminal_table import fitted
from reports.tables.table import tabulate
from tests.reports.synthetic import finish, make_study

STUDY = make_study(arms=("erm", "uniform", *(f"arm{index}" for index in range(28))))
MARKDOWN = (
    "Claims of the sources\n\n| claim | verdict |\n| --- | --- |\n| x | holds |\n\n"
    + tabulate(STUDY, tuple(map(finish, STUDY.runs()))).markdown()
)


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize("rows", [10, 40])
def test_a_table_fits_the_terminal_and_lists_omitted_columns(columns: int, rows: int) -> None:
    lines = fitted(MARKDOWN, columns, rows).splitlines()
    assert max(map(len, lines)) < columns
    assert lines[0].split("  ")[0] == "arm"
    assert "test error" in lines[0]
    assert "\\" not in "".join(lines)
    assert "**" not in "".join(lines)
    if rows == 10:
        assert len([line for line in lines if line.startswith(("erm", "uniform", "arm"))]) == 9
        assert "... 22 more" in lines
    else:
        assert not any(line.startswith("...") for line in lines)
    assert columns == 140 or any(line.startswith("not shown: ") for line in lines)


def test_marks_of_the_table_are_explained_below_it() -> None:
    table = (
        "| arm | error | n |\n| --- | --- | --- |\n| erm | 1.0 | 2/2 |\n| mixup | 1.1† | 2/2 |\n"
    )
    said = "†: not significantly different from the best mean"
    assert said in fitted(table, 80, 20).splitlines()
    assert "†" not in fitted(table.replace("†", ""), 80, 20)
    wide = table.replace("error", "e" * 70)
    assert fitted(wide, 60, 20).splitlines()[0].endswith("...")


def test_text_without_a_table_of_arms_gives_no_terminal_table() -> None:
    assert fitted("| claim | x |\n| --- | --- |\n| a | b |\n", 80, 20) == ""
    assert fitted("", 80, 20) == ""


def test_a_long_arm_name_is_shortened_to_keep_the_headline_metric() -> None:
    name = "law=beta(0.2) weight_decay=0.0005 optimizer=sgd lr=0.1 epochs=300 batch_size=64"
    markdown = f"| arm | test error, % | n |\n| --- | --- | --- |\n| {name} | 12.34 ± 0.56 | 5/5 |"
    _, row, *_ = fitted(markdown, 60, 20).splitlines()
    assert len(row) < 60
    assert row.startswith("law=beta(0.2)")
    assert "batch_size=64  12.34 ± 0.56" in row
    assert row.endswith("5/5")
