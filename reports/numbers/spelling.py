"""Spelling: write numbers, p values and table cells as text, in Markdown, LaTeX and CSV."""

import csv
import io
import json
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mixup_core.problem import Metric

_LONGEST_NAME, _LONGEST_HEADING = 16, 20
"""Longest first cell and heading, in characters; longer ones are broken into lines in LaTeX."""

_MOST_DIGITS = 18
"""Largest number of digits after the point."""

DASH = "—"


def spell_number(value: float, digits: int) -> str:
    """Return a number as text with the given number of decimals; zero never has a sign."""
    return f"{value:z.{digits}f}"


def spell_interval(low: float | None, high: float | None, scale: float, digits: int) -> str:
    """Return an interval as text that begins with a space, ` [low, high]`; empty without one.

    If both ends would round to the same number, they get more digits, so that no interval looks
    empty. Ends with many zeros after the point are written with an exponent.
    """
    form = _form(low, high, scale, digits)
    if low is None or high is None or form is None:
        return ""
    return f" [{scale * low:{form}}, {scale * high:{form}}]"


def spell_value(
    value: float | None, low: float | None, high: float | None, scale: float, digits: int
) -> str:
    """Return a value with its interval as text: `1.20 [1.10, 1.35]`; a dash for None.

    The value has the digits of the interval's ends, so that it never seems to be outside.
    """
    if value is None:
        return DASH
    form = _form(low, high, scale, digits) or f"z.{digits}f"
    return f"{scale * value:{form}}" + spell_interval(low, high, scale, digits)


def _form(low: float | None, high: float | None, scale: float, digits: int) -> str | None:
    """Return the format in which the ends of an interval differ; None without such an interval."""
    if low is None or high is None:
        return None
    if low < high and _is_tiny(scale * max(-low, high), digits):
        return "z.1g"
    for more in range(digits, _MOST_DIGITS):
        if spell_number(low * scale, more) != spell_number(high * scale, more):
            return f"z.{more}f"
    return None


def _is_tiny(value: float, digits: int) -> bool:
    """Return True if a number needs more than three further digits to show that it is not 0."""
    return value < 0.5 * 10.0 ** -(digits + 3)


def spell_estimate(record: Mapping[str, Any], name: str, scale: float, digits: int) -> str:
    """Return a value of a CSV row with its interval (NAME_low, NAME_high), as text."""
    return spell_value(record[name], record[f"{name}_low"], record[f"{name}_high"], scale, digits)


def spell_half(half: float, scale: float, digits: int) -> str:
    """Return half the width of an interval as text, never rounded to 0; a dash if it is 0."""
    if half <= 0:
        return DASH
    if _is_tiny(scale * half, digits):
        return f"{scale * half:.1g}"
    while digits < _MOST_DIGITS and float(text := spell_number(half * scale, digits)) == 0:
        digits += 1
    return text


def spell_amount(difference: float, metric: Metric) -> str:
    """Return a difference of a metric as text with its unit: `1.67 points` for an error."""
    number = spell_number(difference * metric.scale, metric.digits)
    if difference and float(number) == 0:
        number = f"{difference * metric.scale:.1g}"
    return f"{number} {metric.difference_unit}".rstrip()


def spell_heading(text: str, metric: Metric) -> str:
    """Return the heading of a column of differences, with their unit: `minus erm, points`."""
    return f"{text}, {metric.difference_unit}" if metric.difference_unit else text


def spell_p(p: float | None) -> str:
    """Return a p value as text with two significant digits, or `< 0.001`; a dash for None."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:#.2g}"


def upper_first(text: str) -> str:
    """Return a text with its first letter in upper case; the others stay as they are."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return a phrase as a sentence: its first letter in upper case, and a full stop at its end."""
    return upper_first(text.removesuffix(".")) + "."


def sentences(caption: str) -> list[str]:
    """Return the sentences of a caption."""
    return re.split(r"(?<=\.)(?<!\bal\.) ", caption)


def spell_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV text at full precision; a spreadsheet reads no cell as a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line, record in enumerate(records):
        if line == 0:
            writer.writerow([csv_cell(name) for name in record])
        writer.writerow([csv_cell(value) for value in record.values()])
    return text.getvalue()


def markdown_grid(grid: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a Markdown table; the first row is the header.

    Cells are written as they are, so they must be escaped already (`escape_markdown`).
    """
    widths = [max(3, *map(len, column)) for column in zip(*grid, strict=True)]
    lines = [grid[0], ["-" * width for width in widths], *grid[1:]]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def latex_table(
    grid: Sequence[Sequence[str]], bold: Collection[tuple[int, int]], *, caption: str, label: str
) -> str:
    """Return cells as a LaTeX table, one text column wide; it needs the LaTeX package booktabs."""
    headings, *body = grid
    is_wide = any(len(line[0]) > _LONGEST_NAME for line in body)
    names = "p{0.22\\columnwidth}" if is_wide else "l"
    rows = []
    for place, line in enumerate(body, 1):
        cells = [
            f"\\textbf{{{escape_latex(cell)}}}" if (place, column) in bold else escape_latex(cell)
            for column, cell in enumerate(line)
        ]
        if is_wide:
            name = re.sub(r"(=|\\_)", r"\1\\allowbreak{}", cells[0])
            cells[0] = f"{{\\raggedright {name}\\par}}"
        rows.append(" & ".join(cells) + " \\\\")
    lines = [
        "\\begin{table}[t]",
        "\\centering",
        "\\small",
        "\\setlength{\\tabcolsep}{4pt}",
        f"\\caption{{{caption}}}",
        f"\\label{{{label}}}",
        f"\\begin{{tabular}}{{@{{}}{names}{'l' * (len(headings) - 1)}@{{}}}}",
        "\\toprule",
        " & ".join(map(_latex_heading, headings)) + " \\\\",
        "\\midrule",
        *rows,
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Return a text escaped for Markdown, on one line."""
    return re.sub(r"([\\`*|]|<(?=[A-Za-z/!?])|\](?=\())", r"\\\1", " ".join(text.split()))


def escape_latex(text: str) -> str:
    """Return a text escaped for LaTeX, on one line: an empty one would end a caption."""
    return re.sub(r"(?<![\w.-])-(?=\d)", "$-$", " ".join(text.split()).translate(_LATEX))


def _latex_heading(heading: str) -> str:
    """Return a heading as LaTeX; a long one is broken into stacked lines."""
    if len(heading) <= _LONGEST_HEADING:
        return escape_latex(heading)
    wrapped = map(escape_latex, textwrap.wrap(heading, _LONGEST_HEADING))
    # LaTeX would read `[` after a line's end as the length of a space.
    lines = "\\\\".join(f"{{}}{line}" if line[0] in "[*" else line for line in wrapped)
    return f"\\shortstack[l]{{{lines}}}"


def csv_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            # Frozen: every digit. Published tables are computed again from CSV files;
            # tests/reports/numbers/test_spelling.py fails.
            return repr(float(value))
        case str():
            value = re.sub(r"\r\n?", "\n", value)  # csv would not quote a single \r
            # Spreadsheets run a cell that starts like this as a formula, even after blanks.
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
