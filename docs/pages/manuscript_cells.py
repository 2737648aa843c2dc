"""Manuscript cells: our measured numbers as text, compared with the numbers of a paper."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mixup_core.problem import Problem
from reports.numbers.spelling import DASH, escape_markdown
from reports.numbers.summary import Summary, prediction_interval
from reports.tables.claim_tables import metric_of, spell_compared, spell_judged
from sweeps.study.claims import Claim
from sweeps.study.study import Study

_CLOSE = 0.1
"""Largest relative difference between a printed number and our mean that counts as close."""

_ROUNDING = 1e-9
"""An interval narrower than this fraction of its value is attributed to rounding."""

SAME, NEAR, OTHER = "=", "≈", "≠"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredColumn:
    """A column of a paper's table whose metric our runs measure again."""

    heading: str
    metric: str
    place: float | None = None
    """Position on the axis of the problem at which to read the metric; None for the read-out of the
    study.
    """
    scale: float = 1.0
    """Factor from the stored value to the printed one."""


def mark_of(ours: Summary, printed: str, seeds: int | None) -> str:
    """Return the mark that compares our mean with a number printed in a paper: `=`, `≈` or `≠`.

    `=`: our mean rounds to the printed digits. `≈`: the printed number lies in a 95 % interval or
    within 10 % of our mean. `≠`: neither.

    Args:
        ours: Summary of our values, in the printed unit.
        printed: The printed number.
        seeds: Number of seeds of which the printed number is the mean. `≈` then uses the 95 %
            prediction interval of a mean of so many seeds. None if the printed number does not vary
            over seeds, or their number is unknown; `≈` then uses the interval of our mean.
    """
    number = Decimal(printed)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "a printed number is finite"
    unit = 10.0**exponent
    if abs(ours.mean - float(number)) <= 0.5 * unit * (1 + 1e-9):
        return SAME
    ends = (ours.ci_low, ours.ci_high)
    low, high = ends if seeds is None else prediction_interval(ours, seeds) or (None, None)
    is_within = low is not None and high is not None and low <= float(number) <= high
    is_near = abs(ours.mean - float(number)) <= _CLOSE * abs(ours.mean)
    return NEAR if is_within or is_near else OTHER


def spell_summary(row: Mapping[str, str], metric: str, problem: Problem) -> str:
    """Return a metric's mean and 95 % interval as text, from a row of a report's CSV file."""
    scale = problem.metric(metric).scale
    mean, low, high = (row.get(f"{metric}_{name}", "") for name in ("mean", "ci_low", "ci_high"))
    if not mean:
        return DASH
    least, most = (scale * float(end) if end else None for end in (low, high))
    return spell_mean(scale * float(mean), least, most, row["n"])


def read_cell(cell: str) -> Any:
    """Return the parsed value of a cell in a report's CSV: a number, a boolean or a text."""
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def spell_number(value: float) -> str:
    """Return a number as text with four significant digits."""
    return f"{value:.4g}"


def spell_mean(mean: float, low: float | None, high: float | None, n: str = "") -> str:
    """Return a mean and its interval as text: `0.3312 ± 0.0021`.

    If the interval is asymmetric, the text is `0.33 [0.02, 0.71]`; if all 5 values are equal, it is
    `100 (all 5)`, without an interval, because one of width 0 would mean that every further seed
    gives the same value.
    """
    if low is None or high is None:
        return spell_number(mean)
    below, above = mean - low, high - mean
    if max(below, above) <= _ROUNDING * abs(mean):
        return f"{spell_number(mean)} (all {n})" if n else spell_number(mean)
    if not math.isclose(below, above, rel_tol=1e-6):
        return f"{spell_number(mean)} [{spell_number(low)}, {spell_number(high)}]"
    return f"{spell_number(mean)} ± {above:.2g}"


def spell_claim(study: Study, claim: Claim, reference: str) -> str:
    """Return a claim's comparison as text: `test error, %: uniform less than erm`.

    If papers give a value of the compared difference, it follows as `(source: 1.2 points)`.

    Args:
        study: Study with the claim.
        claim: The claim.
        reference: The value that papers give, as in `verdicts.csv`; empty if there is none. A claim
            that compares an arm with a number contains it already.
    """
    compared = spell_compared(study, claim)
    if not reference or claim.that.number is not None:
        return compared
    shown = study.problem.metric(claim.that.metric)
    return f"{compared} (source: {spell_in(float(reference) * shown.scale, shown.difference_unit)})"


def spell_judged_value(study: Study, claim: Claim, row: Mapping[str, str]) -> str:
    """Return a claim's value as text: `uniform minus erm: -1.67 [-2.1, -1.2] points`.

    Points are percentage points.
    """
    value, low, high = (row[name] for name in ("value", "low", "high"))
    if not value:
        return DASH
    shown = metric_of(study, claim)
    unit = shown.difference_unit if claim.that.number is None else shown.unit
    mean = shown.scale * float(value)
    if not low or not high:
        told = spell_in(mean, unit)
    elif float(high) - float(low) <= 2 * _ROUNDING * abs(float(value)):
        told = f"{spell_in(mean, unit)} (all {row['n']})"
    else:
        ends = [shown.scale * float(end) for end in (low, high)]
        digits = next(d for d in range(4, 18) if f"{ends[0]:.{d}g}" != f"{ends[1]:.{d}g}")
        told = f"{mean:.{digits}g} [{ends[0]:.{digits}g}, {ends[1]:.{digits}g}] {unit}".rstrip()
    return f"{spell_judged(study, claim)}: {told}"


def spell_in(value: float, unit: str) -> str:
    """Return a number and its unit as text, such as `1.67 %`."""
    return f"{spell_number(value)} {unit}".rstrip()


def escaped(cell: str) -> str:
    """Return a table cell escaped for Markdown; a cell in bold marks (`**`) stays as it is."""
    is_bold = cell.startswith("**") and cell.endswith("**")
    return cell if is_bold else escape_markdown(cell)
