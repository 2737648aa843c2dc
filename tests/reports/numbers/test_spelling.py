import csv
import io

import pytest

from mixup_core.problem import Metric
from reports.numbers.spelling import (
    escape_latex,
    escape_markdown,
    latex_table,
    spell_amount,
    spell_csv,
    spell_half,
    spell_interval,
    spell_number,
    spell_p,
    spell_value,
)


@pytest.mark.parametrize(
    ("value", "text"), [(-0.001, "0.00"), (-0.006, "-0.01"), (12.345, "12.35"), (0.0, "0.00")]
)
def test_a_number_that_rounds_to_zero_has_no_sign(value: float, text: str) -> None:
    assert spell_number(value, 2) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "—"), (0.0009, "< 0.001"), (0.001, "0.0010"), (0.5, "0.50"), (1.0, "1.0")],
)
def test_a_p_value_has_two_digits_and_is_never_zero(p: float | None, text: str) -> None:
    assert spell_p(p) == text


def test_no_interval_is_printed_without_a_width() -> None:
    assert spell_interval(-2e-6, 3e-6, 100.0, 2) == " [-0.0002, 0.0003]"
    assert spell_interval(0.104999, 0.105001, 100.0, 2) == " [10.4999, 10.5001]"
    assert spell_interval(0.25, 0.25, 100.0, 2) == ""
    assert spell_value(0.028389, 0.02835, 0.02843, 1.0, 3) == "0.02839 [0.02835, 0.02843]"
    assert spell_half(3e-6, 100.0, 2) == "0.0003"
    assert spell_half(0.0, 100.0, 2) == "—"


def test_csv_keeps_every_digit_and_no_cell_starts_a_formula() -> None:
    text = spell_csv(
        [{"arm": "=1+1", "mean": 0.1 + 0.2, "note": None}, {"arm": "@x", "mean": 1, "note": "a,b"}]
    )
    header, first, second = csv.reader(io.StringIO(text))
    assert header == ["arm", "mean", "note"]
    assert (first[0], float(first[1]), first[2]) == ("'=1+1", 0.1 + 0.2, "")
    assert second == ["'@x", "1", "a,b"]
    cells = ["+1", "-1", "\t1", "\n=1", " =1", "\n@1", "1-1", "a=1"]
    spelled = [
        row["cell"]
        for row in csv.DictReader(
            io.StringIO(spell_csv([{"cell": cell} for cell in cells]), newline="")
        )
    ]
    assert spelled == [f"'{cell}" for cell in cells[:6]] + cells[6:]


def test_markdown_and_latex_markup_is_escaped() -> None:
    assert escape_markdown("a|b *c*\n`d` <b>") == "a\\|b \\*c\\* \\`d\\` \\<b>"
    assert escape_markdown("p < 0.001") == "p < 0.001"
    assert escape_markdown("[x](y) 1 [0, 2] (n)") == "[x\\](y) 1 [0, 2] (n)"
    assert escape_latex("50%_x&y -1 a-b ±") == "50\\%\\_x\\&y $-$1 a-b $\\pm$"
    assert escape_latex("one\n\ntwo") == "one two"


def test_no_line_of_a_latex_heading_starts_with_a_bracket() -> None:
    grid = [["arm", "minus a-long-name [oracle], points"], ["erm", "1"]]
    assert "\\\\[" not in latex_table(grid, (), caption="", label="")


def test_a_number_that_is_not_0_never_reads_as_0() -> None:
    assert spell_value(1.2e-6, 1.1e-6, 1.3e-6, 1.0, 3) == "0.0000012 [0.0000011, 0.0000013]"
    assert spell_value(1e-6, -0.01, 0.01, 1.0, 3) == "0.000 [-0.010, 0.010]"
    error = Metric(label="test error", unit="%")
    assert spell_amount(1.3e-6, error) == "0.0001 points"
    assert spell_amount(0.0, error) == "0.00 points"
