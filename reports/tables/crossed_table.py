"""Crossed designs: table of the share of the variance that each source of randomness causes."""

from collections.abc import Mapping
from typing import Any

from reports.numbers.crossed import LEAST_CONTEXTS, Index, indices
from reports.numbers.runs import values_of
from reports.numbers.spelling import spell_estimate
from reports.numbers.spread import sd_interval
from reports.numbers.summary import summarise
from reports.tables.listings import Listing
from reports.tables.variation import settings_by_source
from sweeps.state.results import RunResult
from sweeps.study.study import Study

_FIRST, _SECOND = "nothing", "all"


def crossed_table(study: Study, arranged: Mapping[str, Mapping[int, RunResult]]) -> Listing | None:
    """Return the table of variance shares by source of randomness (first-order and total indices).

    The result is None if no share can be computed. Shares need a crossed design, which has three
    kinds of arms with otherwise equal settings, at 3 common seeds or more. The first kind draws
    every source of randomness once per seed, the second draws all sources again with other random
    numbers, and the third draws a single source again and keeps the others of the first.
    """
    groups = settings_by_source(study, arranged, study.problem.randomness.redrawn)
    groups = {
        name: of_group for name, of_group in groups.items() if {_FIRST, _SECOND} < {*of_group}
    }
    if not groups:
        return None
    metric = study.problem.metric(study.headline)
    values = values_of(arranged, study.headline, study.readout)
    cells, records = [], []
    for setting, of_group in groups.items():
        sources = {name: arm for name, arm in of_group.items() if name not in {_FIRST, _SECOND}}
        for source, arm in sources.items():
            rows = [values[of_group[_FIRST]], values[of_group[_SECOND]], values[arm]]
            seeds = sorted(rows[0].keys() & rows[1].keys() & rows[2].keys())
            record = _record(setting, source, [[row[seed] for seed in seeds] for row in rows])
            records.append(record)
            scale, digits = metric.scale, metric.digits
            cells.append(
                (
                    setting,
                    source,
                    str(len(seeds)),
                    spell_estimate(record, "sd", scale, digits),
                    spell_estimate(record, "first", 100.0, 0),
                    spell_estimate(record, "total", 100.0, 0),
                )
            )
    if not any(record["first"] is not None for record in records):
        return None
    unit = metric.difference_unit
    return Listing(
        name="crossed",
        title="Share of the variance over seeds by source of randomness",
        header=(
            "setting", "source", "n", f"sd over seeds, {unit}".rstrip(", "),
            "first-order index, %", "total index, %",
        ),
        cells=tuple(cells),
        caption=f"Sensitivity indices of the {metric.label} (read-out: {study.readout}) from a "
        "crossed design: at each of n seeds, all sources of randomness are drawn once, all are "
        "drawn again, and each source alone is drawn again while the others stay. First-order "
        "index: the share of the variance that disappears if this source is fixed, on average over "
        "the other sources. Total index: the share of the variance that remains if all other "
        "sources are fixed, including interactions. First-order indices sum to at most 100 %, and "
        "total indices to at least 100 %, except for estimation noise. Estimators: Saltelli et al. "
        "2010 and Jansen 1999. Intervals are 95 % jackknife intervals over seeds, not adjusted for "
        "multiple comparisons. An estimate below 0 or above 100 %, which noise can cause, is shown "
        "as 0 or 100, and its interval is shifted by the same amount (Mandelkern and Schultz "
        "2000); the CSV file has the original estimate. There is no interval where the source "
        "changed no run. The source `rounding` changes one initial weight by one unit in the last "
        "place; it measures chance that no seed controls.",
        records=tuple(records),
    )  # fmt: skip


def _record(setting: str, source: str, rows: list[list[float]]) -> dict[str, Any]:
    first, second, moved = rows
    n = len(first)
    record: dict[str, Any] = {"setting": setting, "source": source, "n": n}
    names = [f"{name}{end}" for name in ("sd", "first", "total") for end in ("", "_low", "_high")]
    record |= dict.fromkeys([*names, "first_estimate", "total_estimate"])
    if n < LEAST_CONTEXTS or len({*first, *second}) == 1:
        return record
    sd = summarise([*first, *second]).sd
    assert sd is not None
    record |= dict(zip(names[:3], (sd, *sd_interval(sd, 2 * n)), strict=True))
    found = indices(first, second, moved)
    for name, index in (("first", found.first), ("total", found.total)):
        record |= _columns(name, index)
    return record


def _columns(name: str, index: Index) -> dict[str, float | None]:
    return {
        name: index.value,
        f"{name}_low": index.low,
        f"{name}_high": index.high,
        f"{name}_estimate": index.estimate,
    }
