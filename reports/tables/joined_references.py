"""Joined references: published values beside ours, with one column for each of several studies."""

from collections.abc import Mapping, Sequence
from typing import Any

from mixup_core.problem import Metric, Problem
from reports.numbers.runs import arrange
from reports.numbers.spelling import DASH, spell_interval, spell_number
from reports.tables.joined_columns import JoinedColumn
from reports.tables.listings import Listing
from reports.tables.references import reference_table, spell_differing


def joined_references(
    heads: Sequence[str], columns: Sequence[JoinedColumn], problem: Problem
) -> Listing | None:
    """Return our values beside those that papers print, by study; None if no study has any."""
    rows: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    records = []
    for head, column in zip(heads, columns, strict=True):
        listing = reference_table(column.study, arrange(column.study, column.results))
        for record in () if listing is None else listing.records:
            records.append({"column": head, **record})
            cells = _spell_reference(record, problem.metric(record["metric"]))
            rows.setdefault((record["arm"], record["metric"]), {})[head] = cells
    if not rows:
        return None
    nothing = (DASH, DASH)
    return Listing(
        name="references",
        title="Comparison with published values",
        header=(
            "arm",
            "metric",
            *(h for head in heads for h in (f"{head}, paper", "ours minus paper")),
        ),
        cells=tuple(
            (
                arm,
                problem.metric(metric).heading,
                *(cell for head in heads for cell in by_head.get(head, nothing)),
            )
            for (arm, metric), by_head in rows.items()
        ),
        caption="Intervals are not adjusted for multiple comparisons. They cover the variation "
        "over our seeds only, not the uncertainty of the published values."
        + "".join(dict.fromkeys(spell_differing(column.study) for column in columns)),
        records=tuple(records),
    )


def _spell_reference(record: Mapping[str, Any], metric: Metric) -> tuple[str, str]:
    """Return a paper's value, and our value minus the paper's with its interval, as text."""
    scale, digits, paper = metric.scale, metric.digits, record["paper"]
    printed = spell_number(paper * scale, digits)
    if record["difference"] is None:
        return printed, DASH
    ends = (record["ci_low"], record["ci_high"])
    low, high = (None if end is None else end - paper for end in ends)
    ours = spell_number(record["difference"] * scale, digits)
    return printed, ours + spell_interval(low, high, scale, digits)
