"""Figures of series: metrics that have a value for each class, each feature, and so on."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from mixup_core.problem import Series
from mixup_core.records import EpochRecord
from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    Styles,
    draw_axis,
    draw_mean,
    finished,
    legend,
    place_of,
    scale_values,
    spell_counts,
    spell_scales,
    styled,
)
from reports.numbers.runs import Arranged, complete_runs, counted_runs
from reports.numbers.spelling import spell_csv, upper_first
from reports.numbers.summary import Measure, summarise
from reports.tables.table import Table

_MOST_ARMS = 4
"""Largest number of arms for which the figure of parts is drawn; each arm is one panel."""


def draw_series(arranged: Arranged, table: Table, styles: Styles) -> tuple[Figure, ...]:
    """Return one figure for each measured series, such as the error of each class."""
    figures = (
        _by_part(series, arranged, table)
        if series.along is None
        else _along_parts(series, arranged, table, styles)
        for series in table.problem.presentation.series
    )
    return tuple(figure for figure in figures if figure is not None)


def _by_part(series: Series, arranged: Arranged, table: Table) -> Figure | None:
    """Return one panel per arm, in which each part is a row of cells coloured by its value."""
    arms = [row.arm for row in table.printed]
    complete = {arm: complete_runs(arranged[arm]) for arm in arms}
    shared = [seed for seed in arranged[arms[0]] if all(seed in complete[arm] for arm in arms)]
    if len(arms) > _MOST_ARMS or not shared:
        return None
    seed, axis = shared[0], table.problem.axis
    by_arm = {arm: _curves(series, complete[arm][seed].records, table) for arm in arms}
    curves = {arm: by_part for arm, by_part in by_arm.items() if by_part}
    if not any(len(curve) > 1 for by_part in curves.values() for curve in by_part.values()):
        return None
    parts = list(dict.fromkeys(part for by_part in curves.values() for part in by_part))
    scale = series.metric.scale
    shown = [scale * v for by_part in curves.values() for c in by_part.values() for v in c.values()]
    norm = mpl.colors.Normalize(min(shown), max(shown))
    with styled():
        canvas = Canvas(
            figsize=(0.6 + len(curves) * 0.85 * PANEL_INCHES, 1.0 + 0.16 * len(parts)),
            layout="constrained",
        )
        panels = canvas.subplots(1, len(curves), squeeze=False, sharey=True)[0]
        for axes, (arm, by_part) in zip(panels, curves.items(), strict=True):
            places = sorted(set().union(*by_part.values()))
            lines = [by_part.get(part, {}) for part in parts]
            cells = [[scale * line.get(x, math.nan) for x in places] for line in lines]
            axes.pcolormesh(
                places, range(len(parts)), cells, norm=norm, shading="nearest", rasterized=True
            )
            axes.grid(visible=False)
            axes.set_title(table.title_of(arm))
            draw_axis(axes, axis)
            axes.set_xlim(places[0], places[-1])
        panels[0].set_yticks(range(len(parts)), parts, fontsize=7)
        panels[0].invert_yaxis()
        canvas.colorbar(mpl.cm.ScalarMappable(norm), ax=list(panels), label=series.metric.heading)
        return finished(
            canvas,
            name=_name(series),
            title=upper_first(series.metric.label),
            caption=f"{upper_first(series.metric.label)} by {axis.label}, with one row of cells "
            f"for each part. All rows are of seed {seed}, the first seed that every arm has "
            f"completed. {table.selection.brief}",
            # Frozen: columns of `figures/series_*.csv`, which scripts read by name;
            # tests/reports/figures/test_series.py fails.
            numbers=spell_csv(
                [
                    {"arm": arm, "seed": seed, "part": part, axis.metric or axis.unit: place}
                    | {"value": value}
                    for arm, by_part in curves.items()
                    for part, curve in by_part.items()
                    for place, value in curve.items()
                ]
            ),
        )


def _along_parts(series: Series, arranged: Arranged, table: Table, styles: Styles) -> Figure | None:
    """Return the final values of each arm as a curve over the parts, whose names are numbers."""
    values: dict[str, dict[int, dict[float, float]]] = {}
    for row in table.printed:
        last = {s: r.records[-1] for s, r in counted_runs(arranged[row.arm]).items()}
        parts_at_seed = {seed: _parts(series, record, table) for seed, record in last.items()}
        if parts_at_seed and all(parts_at_seed.values()):
            values[row.arm] = {
                seed: dict(sorted((float(part), value) for part, value in parts.items()))
                for seed, parts in parts_at_seed.items()
            }
    if not values:
        return None
    least, most = series.metric.bounds
    measure = Measure(least=least, most=most)
    numbers: list[dict[str, Any]] = []
    seeds = sorted(set().union(*values.values()))
    with styled():
        canvas = Canvas(figsize=(PANEL_INCHES * 1.3, 3.2), layout="constrained")
        axes = canvas.subplots()
        scale = series.metric.scale
        for arm, by_seed in values.items():
            colour, _ = styles[arm]
            for parts in by_seed.values():
                heights = [scale * value for value in parts.values()]
                axes.plot(list(parts), heights, color=colour, alpha=0.3, linewidth=0.6)
            means = {}
            for place in next(iter(by_seed.values())):
                at_place = [p[place] for p in by_seed.values() if place in p]
                means[place] = summarise(at_place, measure)
                numbers.append(
                    {"arm": arm, "part": place, "mean": means[place].mean}
                    | {"ci_low": means[place].ci_low, "ci_high": means[place].ci_high}
                    | {f"seed_{s}": by_seed.get(s, {}).get(place) for s in seeds}
                )
            draw_mean(axes, means, scale, styles[arm], table.title_of(arm))
        axes.set_xlabel(series.along or "")
        axes.set_ylabel(series.metric.heading)
        dots = [scale * v for seeds in values.values() for p in seeds.values() for v in p.values()]
        scale_values(axes, series.metric, dots)
        legend(canvas, axes)
        return finished(
            canvas,
            name=_name(series),
            title=upper_first(series.metric.label),
            caption=f"{upper_first(series.metric.label)} by {series.along}, at the end of "
            f"training. Thick line: mean over the complete runs ({spell_counts(table)}). Band: "
            f"pointwise 95 % t interval. Thin lines: single seeds.{spell_scales([axes])} "
            f"{table.selection.brief}",
            numbers=spell_csv(numbers),
        )


def _name(series: Series) -> str:
    return f"series_{series.head.replace('/', '_')}"


def _curves(
    series: Series, records: Sequence[EpochRecord], table: Table
) -> dict[str, dict[float, float]]:
    """Return the values of each part, by position on the horizontal axis."""
    curves: dict[str, dict[float, float]] = {}
    for record in records:
        place = place_of(record, table.problem.axis)
        for part, value in _parts(series, record, table).items():
            if place is not None:
                curves.setdefault(part, {})[place] = value
    return curves


def _parts(series: Series, record: EpochRecord, table: Table) -> dict[str, float]:
    head = f"{series.head}/"
    return {
        metric.removeprefix(head): value
        for metric, value in record.metrics.items()
        if metric.startswith(head) and metric not in table.problem.metrics
    }
