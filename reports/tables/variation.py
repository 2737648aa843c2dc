"""Variation: tables of the variation of results over seeds, by source of randomness."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mixup_core.config.written_forms import flatten
from mixup_core.problem import Config
from reports.numbers.arms import summarise_arm
from reports.numbers.runs import Arranged, values_of
from reports.numbers.spelling import spell_amount, spell_estimate
from reports.numbers.spread import LEAST_CONTEXTS, indices, sd_interval, share_interval
from reports.numbers.summary import sampling_noise, summarise
from reports.tables.listings import Listing
from sweeps.study.readouts import Averaged, Last, Readout
from sweeps.study.study import Study, with_tags

_ALL = "all"


def variation_table(study: Study, arranged: Arranged) -> Listing | None:
    """Return the table of the spread of the headline metric, by source of randomness."""
    groups = settings_by_source(study, arranged, study.problem.randomness.source)
    if not any(source != _ALL for of_group in groups.values() for source in of_group):
        return None
    metric = study.problem.metric(study.headline)
    readouts: list[Readout] = list(dict.fromkeys((study.readout, Last(), Averaged())))
    values = {readout: values_of(arranged, study.headline, readout) for readout in readouts}
    shown = [readout for readout in readouts if any(map(len, values[readout].values()))]
    if not shown:
        return None
    cells, records = [], []
    for label, of_group in groups.items():
        for source, arm in of_group.items():
            line = [with_tags(label, study.tags_of(arm)), source]
            for place, readout in enumerate(shown):
                record = _record_of(
                    label, source, readout, values[readout][arm],
                    values[readout].get(of_group.get(_ALL, ""), {}),
                )  # fmt: skip
                records.append(record)
                line += [str(record["n"])] if place == 0 else []
                scale, digits = metric.scale, metric.digits
                line.append(spell_estimate(record, "sd", scale, digits))
                line.append(spell_estimate(record, "share", 100.0, 0))
            cells.append(tuple(line))
    noise = _test_noise(study, arranged)
    unit = metric.difference_unit
    heads = [
        head
        for readout in shown
        for head in (
            f"sd, {readout}, {unit}".rstrip(", "),
            "share of the variance of all sources, %",
        )
    ]
    return Listing(
        name="variation",
        title="Standard deviation over seeds by source of randomness",
        header=("setting", "source", "n", *heads),
        cells=tuple(cells),
        caption=f"Standard deviation of the {metric.label} over seeds. In the row of a source, the "
        "seed varies this source alone, and all others are drawn as at seed 0; in the row `all` it "
        "varies all sources. The 95 % intervals are from the chi-square and F distributions, which "
        "assume normal values. The shares are not a decomposition of the variance and need not sum "
        "to 100 %, because each row keeps the other sources as at seed 0; a crossed design "
        "(`redraw`) gives a decomposition. The source `rounding` changes one initial weight by one "
        "unit in the last place. Intervals do not cover the variation over test sets"
        + (f" (standard deviation {spell_amount(noise, metric)})" if noise else "")
        + " or over kinds of processors.",
        records=tuple(records),
    )


def settings_by_source(
    study: Study, arms: Iterable[str], source: Callable[[Config], tuple[str, Config]]
) -> dict[str, dict[str, str]]:
    """Group arms whose settings differ only in which source of randomness varies over seeds."""
    by_setting: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for arm in arms:
        varied, plain = source(study.arms[arm])
        setting = json.dumps({**flatten(plain), "seed": 0}, sort_keys=True)
        by_setting.setdefault(setting, {}).setdefault(varied, arm)
        names.setdefault(setting, study.problem.presentation.method(plain) or arm)
    found: dict[str, dict[str, str]] = {}
    for setting, of_setting in by_setting.items():
        name = names[setting]
        found[name if name not in found else next(iter(of_setting.values()))] = of_setting
    return found


def _record_of(
    setting: str,
    source: str,
    readout: Readout,
    values: Mapping[int, float],
    of_all: Mapping[int, float],
) -> dict[str, Any]:
    sd = summarise(list(values.values())).sd if values else None
    sd_all = summarise(list(of_all.values())).sd if of_all else None
    n, n_all = len(values), len(of_all)
    low, high = sd_interval(sd, n) if sd else (None, None)
    share = None if sd is None or not sd_all or source == _ALL else (sd / sd_all) ** 2
    share_low, share_high = share_interval(share, n, n_all) if share else (None, None)
    # Frozen: columns of `tables/variation.csv`, which scripts read by name;
    # tests/reports/tables/test_variation.py fails.
    return {
        "setting": setting,
        "source": source,
        "readout": str(readout),
        "n": n,
        "mean": summarise(list(values.values())).mean if values else None,
        "sd": sd,
        "sd_low": low,
        "sd_high": high,
        "share": share,
        "share_low": share_low,
        "share_high": share_high,
    }


def _test_noise(study: Study, arranged: Arranged) -> float | None:
    """Return the sampling noise at the mean error of the baseline."""
    row = summarise_arm(study, study.baseline, arranged[study.baseline], (study.headline,))
    size = study.problem.measuring.sample_size(study.arms[study.baseline], study.headline)
    summary = row.summaries.get(study.headline)
    if summary is None or size is None or not 0 <= summary.mean <= 1:
        return None
    return sampling_noise(summary.mean, size)


_FIRST, _SECOND = "nothing", "all"


def crossed_table(study: Study, arranged: Arranged) -> Listing | None:
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
                    with_tags(setting, study.tags_of(arm)),
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
    for name, index in zip(("first", "total"), indices(first, second, moved), strict=True):
        record |= {name: index.value, f"{name}_low": index.low, f"{name}_high": index.high}
        record |= {f"{name}_estimate": index.estimate}
    return record
