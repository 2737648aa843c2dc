"""References: values printed in papers beside the values measured here, of one study or several."""

from collections.abc import Mapping, Sequence
from typing import Any

from reports.numbers.runs import arrange, measure_of, values_of
from reports.numbers.spelling import DASH, spell_amount, spell_interval, spell_number
from reports.numbers.summary import summarise
from reports.tables.joined_columns import JoinedColumn
from reports.tables.listings import Listing, digits_of, spell_summary
from sweeps.state.results import RunResult
from sweeps.study.study import Study

_TITLE = "Comparison with published values"
_UNCOVERED = (
    "Intervals are not adjusted for multiple comparisons. They cover the variation over our seeds "
    "only, not the uncertainty of the published values"
)
NOT_TRAINED = "not trained"
"""Text in the column for the number of runs, for a method that the study lists but does not train.
"""


def reference_table(
    study: Study, arranged: Mapping[str, Mapping[int, RunResult]]
) -> Listing | None:
    """Return the table of values printed in papers, values measured here, and their differences.

    The result is None if the study lists no paper values.
    """
    cells, records = [], []
    trained = {arm: row for arm, row in study.references.items() if arm in study.arms}
    for arm, by_metric in (*trained.items(), *study.untrained.items()):
        for metric, paper in by_metric.items():
            shown = study.problem.metric(metric)
            runs = {arm: arranged.get(arm, {})}
            values = list(values_of(runs, metric, study.readout)[arm].values())
            measure = measure_of(study, arm, metric, study.readout)
            ours = summarise(values, measure) if values else None
            difference, interval = DASH, ""
            record: dict[str, Any] = {"arm": arm, "metric": metric, "paper": paper}
            for name in ("n", "mean", "ci_low", "ci_high"):
                record[name] = getattr(ours, name, None)
            record["difference"] = None if ours is None else ours.mean - paper
            if ours is not None:
                ends = [None if end is None else end - paper for end in (ours.ci_low, ours.ci_high)]
                digits = digits_of(ours.n, shown)
                interval = spell_interval(ends[0], ends[1], shown.scale, digits)
                difference = spell_amount(ours.mean - paper, shown)
            cells.append(
                (
                    arm,
                    shown.heading,
                    spell_summary(ours, shown),
                    f"{len(values)}/{len(study.seeds_of(arm))}" if arm in trained else NOT_TRAINED,
                    spell_number(paper * shown.scale, shown.digits),
                    difference + interval,
                )
            )
            records.append(record)
    if not cells:
        return None
    return Listing(
        name="references",
        title=_TITLE,
        header=("arm", "metric", "ours", "n", "paper", "ours minus paper"),
        cells=tuple(cells),
        caption="Ours: mean ± the half-width of the 95 % t interval over seeds (read-out: "
        f"{study.readout}). {_UNCOVERED}, nor the effect of other sizes, data or machines."
        f"{spell_differing(study)}",
        records=tuple(records),
    )


def joined_references(heads: Sequence[str], columns: Sequence[JoinedColumn]) -> Listing | None:
    """Return our values beside those that papers print, by study; None if no study has any."""
    rows: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    records = []
    for head, column in zip(heads, columns, strict=True):
        listing = reference_table(column.study, arrange(column.study, column.results))
        if listing is not None:
            records += [{"column": head, **record} for record in listing.records]
            for arm, metric, *_, paper, difference in listing.cells:
                rows.setdefault((arm, metric), {})[head] = (paper, difference)
    if not rows:
        return None
    headings = (h for head in heads for h in (f"{head}, paper", "ours minus paper"))
    return Listing(
        name="references",
        title=_TITLE,
        header=("arm", "metric", *headings),
        cells=tuple(
            (*row, *(cell for head in heads for cell in by_head.get(head, (DASH, DASH))))
            for row, by_head in rows.items()
        ),
        caption=f"{_UNCOVERED}."
        + "".join(dict.fromkeys(spell_differing(column.study) for column in columns)),
        records=tuple(records),
    )


def spell_differing(study: Study) -> str:
    """Return a sentence on how a study differs from the papers whose values it is compared with.

    The result is empty if the study lists no such differences.
    """
    if not study.differs:
        return ""
    return f" Differences from the source: {'; '.join(study.differs)}."
