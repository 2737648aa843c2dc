"""Variation: table of how much results vary if only one source of randomness varies."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mixup_core.config.written_forms import flatten
from mixup_core.problem import Config
from reports.numbers.arms import summarise_arm
from reports.numbers.runs import values_of
from reports.numbers.spelling import spell_amount, spell_estimate
from reports.numbers.spread import sd_interval, share_interval
from reports.numbers.summary import summarise
from reports.tables.listings import Listing
from sweeps.state.results import RunResult
from sweeps.study.readouts import Averaged, Last, Readout
from sweeps.study.study import Study

_ALL = "all"


def variation_table(
    study: Study, arranged: Mapping[str, Mapping[int, RunResult]]
) -> Listing | None:
    """Return the table of how much the headline metric varies over seeds, by source of randomness.

    In each row, the seeds vary one source alone, or all. The result is None if the study has no arm
    in which a single source varies.
    """
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
            line = [label, source]
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


def _test_noise(study: Study, arranged: Mapping[str, Mapping[int, RunResult]]) -> float | None:
    """Return the sampling noise sqrt(p (1 - p) / N) at the mean error of the baseline."""
    row = summarise_arm(study, study.baseline, arranged[study.baseline], (study.headline,))
    size = study.problem.measuring.sample_size(study.arms[study.baseline], study.headline)
    summary = row.summaries.get(study.headline)
    if summary is None or size is None or not 0 <= summary.mean <= 1:
        return None
    return math.sqrt(summary.mean * (1 - summary.mean) / size)
