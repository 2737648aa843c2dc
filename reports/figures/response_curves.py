"""Response curves: figures of metrics against one setting of the arms (curve), or two (map)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from mixup_core.problem import Metric
from reports.figures.canvas import (
    Figure,
    LineStyle,
    Styles,
    finished,
    legend,
    line_styles,
    panelled,
    scale_values,
    spell_counts,
    spell_scales,
    styled,
    wrapped,
)
from reports.numbers.arms import ArmRow
from reports.numbers.responses import (
    Coordinates,
    Response,
    ResponsePlane,
    ascending,
    is_geometric,
    plane_of,
    response_of,
)
from reports.numbers.spelling import spell_csv, spell_number, upper_first
from reports.numbers.summary import Summary, numbers_of
from reports.tables.listings import spell_summary
from reports.tables.table import Table
from sweeps.study.study import Study, with_tags

_MOST_PANELS = 4
_MOST_WITH_DIGITS = 8
"""Largest number of cells in a row of a map for which percentages have one decimal."""
_FRAME = "#D55E00"
_SPAN_LETTERS = 36
"""Approximate number of letters that fit between the first and the last tick label of a panel."""


def draw_responses(study: Study, table: Table, styles: Styles) -> tuple[Figure, ...]:
    """Return figures of the arms' metrics against one of their settings (curve) and two (map)."""
    arms = [row.arm for row in table.rows if table.metric in row.summaries]
    if not arms:
        return ()
    response, plane = response_of(study, arms), plane_of(study, arms)
    if response is not None:
        levels = tuple(arm for arm in response.levels if table.equal[arm] == arm)
        response = replace(response, levels=levels)
    return (
        *([] if response is None else [_along(study, table, response, styles)]),
        *([] if plane is None else [_map(table, plane)]),
    )


def _along(study: Study, table: Table, response: Response, styles: Styles) -> Figure:
    """Return the figure of metrics against one setting: a panel per metric, a line per group."""
    summaries = {row.arm: row.summaries for row in table.rows}
    metrics = _panels(study, table, response)
    lines = {label: list(line.values()) for label, line in response.lines.items()}
    of_lines = line_styles(lines, styles, [styles[arm] for arm in response.levels])
    with styled():
        canvas, panels = panelled(len(metrics))
        for axes, metric in zip(panels, metrics, strict=True):
            shown = table.problem.metric(metric)
            for label, line in response.lines.items():
                found = {v: summaries[arm].get(metric) for v, arm in line.items()}
                means = {value: s for value, s in found.items() if s is not None}
                tags = dict.fromkeys(tag for arm in line.values() for tag in study.tags_of(arm))
                _draw_line(axes, with_tags(label, tags), means, shown, of_lines[label])
            for arm in response.levels:
                if (level := summaries[arm].get(metric)) is not None:
                    colour, dashes = styles[arm]
                    axes.axhline(
                        shown.scale * level.mean, color=colour, linestyle=dashes, linewidth=1,
                        alpha=0.8, label=table.title_of(arm), clip_on=False,
                    )  # fmt: skip
            _mark_values(axes, response.values)
            axes.set_xlabel(response.path)
            axes.set_ylabel(wrapped(shown.heading))
            drawn = (summaries[arm].get(metric) for _, _, arm in _drawn(response))
            scale_values(axes, shown, [shown.scale * s.mean for s in drawn if s is not None])
        legend(canvas, panels[0])
        levels = (
            f" Horizontal lines: {', '.join(map(table.title_of, response.levels))}, without this "
            "setting."
            if response.levels
            else ""
        )
        labels = " and ".join(table.problem.metric(metric).label for metric in metrics)
        return finished(
            canvas,
            name="response",
            title=f"Results along {response.path}",
            caption=f"{upper_first(labels)} by {response.path}: mean and 95 % t interval over "
            f"seeds ({spell_counts(table)}). Read-out of each run: {table.readout}."
            f"{levels}{spell_scales(panels)} {table.selection.brief}",
            # Frozen: columns of `figures/response.csv`, which scripts read by name;
            # tests/reports/figures/test_response_curves.py fails.
            numbers=spell_csv(
                [
                    {"metric": metric, "line": label, response.path: value, "arm": arm}
                    | numbers_of(summaries[arm].get(metric))
                    for metric in metrics
                    for label, value, arm in _drawn(response)
                ]
            ),
        )


def _panels(study: Study, table: Table, response: Response) -> list[str]:
    """Return the metrics to draw, one panel each: those whose mean differs between arms."""
    wanted = (table.metric, *(claim.that.metric for claim in study.claims), *table.further)
    summaries = {row.arm: row.summaries for row in table.rows}
    drawn = [arm for _, _, arm in _drawn(response)]
    means = {
        metric: {s.mean for arm in drawn if (s := summaries[arm].get(metric)) is not None}
        for metric in dict.fromkeys(wanted)
    }
    varying = [metric for metric, found in means.items() if len(found) > 1]
    return varying[:_MOST_PANELS] or [table.metric]


def _drawn(response: Response) -> list[tuple[str, float | None, str]]:
    lines = [
        (label, value, arm) for label, line in response.lines.items() for value, arm in line.items()
    ]
    return [*lines, *((arm, None, arm) for arm in response.levels)]


def _draw_line(
    axes: Axes, label: str, means: Mapping[float, Summary], shown: Metric, look: LineStyle
) -> None:
    colour, dashes = look
    heights = [shown.scale * summary.mean for summary in means.values()]
    ends = [
        (max(0.0, s.mean - s.ci_low), max(0.0, s.ci_high - s.mean))  # a mean may be out of bounds
        if s.ci_low is not None and s.ci_high is not None
        else (0.0, 0.0)
        for s in means.values()
    ]
    reach = [[shown.scale * width for width in side] for side in zip(*ends, strict=True)]
    line, _, _ = axes.errorbar(
        list(means), heights, yerr=reach, color=colour, linestyle=dashes, marker="o", ms=4,
        capsize=2.5, elinewidth=0.9, label=label,
    )  # fmt: skip
    line.set_clip_on(False)  # markers at 0 or 100 % would be cut in half


def _map(table: Table, plane: ResponsePlane) -> Figure:
    """Return the map over two numeric settings, with one panel per group of arms."""
    summaries = {
        row.arm: row.summaries[table.metric] for row in table.rows if table.metric in row.summaries
    }
    shown = table.shown
    mapped = {arm for cells in plane.maps.values() for arm in cells.values()}
    beside = [
        f"{row.title} {spell_summary(row.summaries.get(table.metric), shown)}"
        for row in table.printed
        if row.arm not in mapped
    ]
    drawn = [arm for arm in summaries if arm in mapped]
    means = [shown.scale * summaries[arm].mean for arm in drawn]
    with styled():
        canvas, panels = panelled(len(plane.maps), height=2.8)
        norm = mpl.colors.Normalize(min(means), max(means))
        rows = {row.arm: row for row in table.rows if row.arm in summaries}
        for axes, (label, cells) in zip(panels, plane.maps.items(), strict=True):
            _draw_cells(axes, {place: rows.get(arm) for place, arm in cells.items()}, norm, table)
            axes.set_xlabel(plane.across)
            axes.set_ylabel(plane.up)
            if len(plane.maps) > 1:
                axes.set_title(label)
        colours = mpl.cm.ScalarMappable(norm, mpl.colormaps["viridis"])
        canvas.colorbar(colours, ax=panels, label=shown.heading)
        return finished(
            canvas,
            name="phase_map",
            title=f"Map of {plane.across} and {plane.up}",
            caption=f"{upper_first(shown.label)}: mean over seeds ({spell_counts(table)}). "
            f"Read-out of each run: {table.readout}. Hatched: not measured."
            + (
                " Framed: the best mean among the arms whose seeds are all complete."
                if any(rows[arm].is_best for arm in drawn)
                else ""
            )
            + "".join(
                f" null: {path} is not set."
                for which, path in enumerate((plane.across, plane.up))
                if any(place[which] is None for cells in plane.maps.values() for place in cells)
            )
            + (f" Not on the map: {', '.join(beside)}." if beside else "")
            + f" {table.selection.brief}",
            numbers=spell_csv(
                [
                    {"map": label, plane.across: x, plane.up: y, "arm": arm}
                    | numbers_of(summaries.get(arm))
                    for label, cells in plane.maps.items()
                    for (x, y), arm in sorted(cells.items(), key=lambda cell: ascending(cell[0]))
                ]
            ),
        )


def _draw_cells(
    axes: Axes, cells: Mapping[Coordinates, ArmRow | None], norm: mpl.colors.Normalize, table: Table
) -> None:
    across, up = (
        [value for (value,) in sorted({(place[which],) for place in cells}, key=ascending)]
        for which in (0, 1)
    )
    shown = table.shown
    digits = 1 if shown.unit == "%" and len(across) <= _MOST_WITH_DIGITS else 0
    for place_x, x in enumerate(across):
        for place_y, y in enumerate(up):
            row = cells.get((x, y))
            value = None if row is None else shown.scale * row.summaries[table.metric].mean
            colour = "white" if value is None else mpl.colormaps["viridis"](norm(value))
            axes.add_patch(
                mpl.patches.Rectangle(
                    (place_x - 0.5, place_y - 0.5), 1, 1, facecolor=colour, linewidth=0,
                    hatch="///" if value is None else "",
                )
            )  # fmt: skip
            if row is None or value is None:
                continue
            ink = "white" if norm(value) < 0.6 else "black"
            text = spell_number(value, digits if shown.unit == "%" else shown.digits)
            if row.n < row.seeds_expected:
                text += f"\nn={row.n}"
            axes.text(place_x, place_y, text, ha="center", va="center", color=ink, fontsize=7)
            if row.is_best:
                axes.add_patch(
                    mpl.patches.Rectangle(
                        (place_x - 0.47, place_y - 0.46), 0.94, 0.92, fill=False, linewidth=1.8,
                        edgecolor=_FRAME,
                    )
                )  # fmt: skip
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(-0.5, len(up) - 0.5)
    axes.set_xticks(range(len(across)), [_spell_value(value) for value in across])
    axes.set_yticks(range(len(up)), [_spell_value(value) for value in up])
    axes.grid(visible=False)


def _spell_value(value: float | None) -> str:
    return "null" if value is None else f"{value:g}"


def _mark_values(axes: Axes, values: Sequence[float]) -> None:
    """Label the values on the horizontal axis, leaving out labels that would overlap."""
    along = math.log if is_geometric(values) else float
    if along is math.log:
        axes.set_xscale("log")
    named = _apart(sorted(values), along)
    axes.set_xticks(named, [f"{value:g}" for value in named])
    axes.xaxis.set_minor_locator(NullLocator())


def _apart(values: Sequence[float], along: Callable[[float], float]) -> list[float]:
    """Return the values to label: the first, the last, and those far enough apart in between."""
    *inner, last = values
    kept: list[float] = []
    span = along(last) - along(values[0])
    for value in inner:
        neighbours = [*kept[-1:], last]
        if not kept or all(
            abs(along(value) - along(other)) * _SPAN_LETTERS
            > span * (1.5 + (len(f"{value:g}") + len(f"{other:g}")) / 2)
            for other in neighbours
        ):
            kept.append(value)
    return [*kept, last]
