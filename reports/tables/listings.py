"""Listings: the tables of a report other than the main table, and the text of their cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mixup_core.problem import Metric
from reports.numbers.comparison import Comparison
from reports.numbers.families import Member
from reports.numbers.spelling import (
    DASH,
    escape_latex,
    escape_markdown,
    latex_table,
    markdown_grid,
    spell_csv,
    spell_half,
    spell_number,
    spell_value,
)
from reports.numbers.summary import Summary
from sweeps.study.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A table of a report other than the main table.

    Its cells are text; its records have all numbers, for the CSV file.
    """

    name: str
    title: str
    header: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    caption: str
    records: tuple[Mapping[str, Any], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    """Row and column of each bold cell of `cells`."""
    is_long: bool = False
    """True for a long table: the console does not show it, and `report.html` shows it collapsed."""

    def markdown(self) -> str:
        """Return this table and its caption as Markdown."""
        grid = [[escape_markdown(cell) for cell in line] for line in (self.header, *self.cells)]
        for row, column in self.bold:
            grid[row + 1][column] = f"**{grid[row + 1][column]}**"
        return f"{markdown_grid(grid)}\n\n{escape_markdown(self.caption)}\n"

    def latex(self, label: str, caption: str | None = None) -> str:
        """Return this table as LaTeX, which needs booktabs; a given caption is LaTeX already."""
        bold = {(row + 1, column) for row, column in self.bold}
        caption = escape_latex(self.caption) if caption is None else caption
        return latex_table((self.header, *self.cells), bold, caption=caption, label=label)

    def part(self, columns: Sequence[int], caption: str) -> "Listing":
        """Return some columns of this table, with another caption."""
        places = {column: place for place, column in enumerate(columns)}
        return replace(
            self,
            header=tuple(self.header[column] for column in columns),
            cells=tuple(tuple(line[column] for column in columns) for line in self.cells),
            bold=frozenset((row, places[column]) for row, column in self.bold if column in places),
            caption=caption,
        )

    def csv(self) -> str:
        """Return all numbers of this table as CSV text at full precision."""
        return spell_csv(self.records)


def tagged(records: Iterable[Mapping[str, Any]], study: Study) -> tuple[Mapping[str, Any], ...]:
    """Return records of arms, with a column `tags` (such as `oracle`) if any arm has a tag."""
    tags = {arm: " ".join(study.tags_of(arm)) for arm in study.arms}
    if not any(tags.values()):
        return tuple(records)
    return tuple({**r, "tags": tags.get(r["arm"], "")} if "arm" in r else r for r in records)


def spell_summary(summary: Summary | None, metric: Metric) -> str:
    """Return a mean and its interval as text: `22.22 ± 1.63`, or `100.00 [88.43, 100.00]`.

    The second form is used if the interval is not symmetric. A dash stands for a missing mean or an
    interval of unknown width.
    """
    if summary is None:
        return DASH
    half, digits = summary.half_width, digits_of(summary.n, metric)
    if half is None and summary.ci_low is None:
        return f"{spell_number(summary.mean * metric.scale, metric.digits)} ± {DASH}"
    if half is None:
        return spell_value(summary.mean, summary.ci_low, summary.ci_high, metric.scale, digits)
    mean = spell_number(summary.mean * metric.scale, digits)
    return f"{mean} ± {spell_half(half, metric.scale, digits)}"


def digits_of(n: int, metric: Metric | int) -> int:
    """Return the number of decimals with which a value over n seeds is printed.

    With two seeds it is one less than usual, because the sd of two values is uncertain.
    """
    usual = metric if isinstance(metric, int) else metric.digits
    return max(0, usual - 1) if n == 2 else usual


def spell_difference(comparison: Comparison | None, metric: Metric) -> str:
    """Return a difference of arms and its interval as text: `-2.45 [-4.01, -0.89]`."""
    if comparison is None:
        return DASH
    ends, digits = (comparison.ci_low, comparison.ci_high), digits_of(comparison.n, metric)
    return spell_value(comparison.difference, *ends, metric.scale, digits)


def spell_member(member: Member | None, metric: Metric, expected: int | None = None) -> str:
    """Return a difference of arms and its adjusted interval as text: `-2.45 [-4.41, -0.49]`."""
    if member is None:
        return DASH
    n, difference = member.comparison.n, member.comparison.difference
    shared = "" if expected in (None, n) else f" (n = {n})"
    digits = digits_of(n, metric)
    return spell_value(difference, member.low, member.high, metric.scale, digits) + shared
