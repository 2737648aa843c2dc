"""Spelling: numbers, p values and cells as text, in Markdown, LaTeX and CSV."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mixup_core.problem import Metric

DASH = "—"
"""Stands where there is no number."""


def spell_number(value: float, digits: int) -> str:
    """Return a rounded number; one that rounds to zero has no sign."""
    return f"{value:z.{digits}f}"


def spell_interval(low: float | None, high: float | None, scale: float, digits: int) -> str:
    """Return ` [low, high]`, scaled and rounded; nothing without an interval."""
    if low is None or high is None:
        return ""
    return f" [{spell_number(low * scale, digits)}, {spell_number(high * scale, digits)}]"


def spell_amount(difference: float, metric: Metric) -> str:
    """Return a difference of a metric with its unit: `1.67 points`."""
    number = spell_number(difference * metric.scale, metric.digits)
    return f"{number} {metric.difference_unit}".rstrip()


def spell_heading(text: str, metric: Metric) -> str:
    """Return a heading of differences of a metric, with their unit: `minus erm, points`."""
    return f"{text}, {metric.difference_unit}" if metric.difference_unit else text


def spell_p(p: float | None) -> str:
    """Return a p value to two digits; a dash without one."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:#.2g}"


def spell_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV at full precision, with no cell that a spreadsheet would run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if records:
        writer.writerow([_csv_cell(name) for name in records[0]])
    writer.writerows([_csv_cell(value) for value in record.values()] for record in records)
    return text.getvalue()


def markdown_grid(grid: Sequence[Sequence[str]]) -> str:
    """Return escaped cells as a Markdown table, the first line as its header."""
    widths = [max(3, *map(len, column)) for column in zip(*grid, strict=True)]
    lines = [grid[0], ["-" * width for width in widths], *grid[1:]]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*|]|<(?=[A-Za-z/!?])|\](?=\())", r"\\\1", " ".join(text.split()))


def escape_latex(text: str) -> str:
    """Return a text that LaTeX sets as it is."""
    return re.sub(r"(?<![\w.-])-(?=\d)", "$-$", text.translate(_LATEX))


def _csv_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return repr(float(value))
        case str():
            value = re.sub(r"\r\n?", "\n", value)  # a lone one would not be quoted
            # A spreadsheet runs a cell that starts like this as a formula, blanks before it or not.
            return f"'{value}" if re.match(r"\s*[=+\-@]|\t", value) else value
        case _:
            return json.dumps(value)


_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "±": "$\\pm$",
        "†": "$^\\dagger$",
        DASH: "---",
    }
)
