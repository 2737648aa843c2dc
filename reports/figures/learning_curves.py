"""Learning curves: metrics against epochs (or another axis), mean and interval over seeds."""

import math
import textwrap
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from mixup_core.keys import changes
from mixup_core.problem import Axis, Metric, Problem
from mixup_core.records import packed
from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    LineStyle,
    Styles,
    Told,
    draw_axis,
    draw_mean,
    ends_of,
    finished,
    legend,
    panelled,
    place_of,
    scale_values,
    spell_counts,
    spell_scales,
    styled,
    wrapped,
)
from reports.numbers.runs import Arranged, counted_runs, measure_of
from reports.numbers.spelling import spell_csv, spell_interval, spell_number, upper_first
from reports.numbers.summary import Measure, Summary, numbers_of, summarise
from reports.tables.table import Table
from sweeps.state.results import RunResult
from sweeps.study.readouts import Last
from sweeps.study.study import Study

_MOST_CHANGES = 3
"""Largest number of changes within an arm, such as a change of its law, that are each marked by a
vertical line.
"""

_MOST_TOGETHER = 8
"""Largest number of arms in one panel. With more, the bands would overlap, so each arm gets its own
panel.
"""

_MOST_DOTS = 15
"""A curve with at most this many values has a dot at each. Without a dot, a single value would be
invisible.
"""


class _Line(Mapping[float, float]):
    """The values of one seed by position on the axis, stored in 8 bytes per value."""

    __slots__ = ("_numbers", "_values")

    def __init__(self, numbers: Mapping[float, int], values: Sequence[float]) -> None:
        """Store the values of a seed; `numbers` has the index of each position among `values`."""
        self._numbers = numbers
        self._values = values

    def __getitem__(self, place: float) -> float:
        return self._values[self._numbers[place]]

    def __contains__(self, place: object) -> bool:
        return place in self._numbers

    def __iter__(self) -> Iterator[float]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Curve:
    """One metric of one arm, along the horizontal axis."""

    seeds: Mapping[int, Mapping[float, float]]
    summaries: Mapping[float, Summary]
    """Mean and interval over the complete runs, by position."""


def draw_curves(study: Study, arranged: Arranged, table: Table, styles: Styles) -> Figure | None:
    """Return the figure of learning curves; None with one epoch only, or nothing stored."""
    if all(config.epochs == 1 for config in study.arms.values()):
        return None
    problem = study.problem
    stored = (result for by_seed in arranged.values() for result in by_seed.values())
    measured = frozenset().union(*(result.records.names for result in stored))
    metrics = list(dict.fromkeys(_panels(table.metric, problem, measured)))
    if not metrics:
        return None
    arms = [row.arm for row in table.printed]
    has_many = len(arms) > _MOST_TOGETHER
    left_out = metrics[1:] if has_many else []
    metrics = metrics[:1] if has_many else metrics
    curves = {
        metric: {
            arm: _curve(arranged[arm], metric, problem.axis, measure_of(study, arm, metric, Last()))
            for arm in arms
        }
        for metric in metrics
    }
    marks = {arm: _marks(study, arm) for arm in arms}
    with styled():
        if has_many:
            canvas, told = _multiples(curves[metrics[0]], table, problem.axis, marks, styles)
        else:
            canvas, told = _together(curves, table, problem.axis, marks, styles)
        figure = finished(
            canvas,
            told=told,
            name="learning_curves",
            title="Learning curves",
            caption=_curves_caption(table, problem.axis, metrics, marks, has_many=has_many)
            + _spell_left_out(left_out, problem)
            + _spell_unmeasured(curves, table)
            + spell_scales(canvas.axes),
            numbers="",
        )
    # Written last: for thousands of runs, drawing alone needs hundreds of MB.
    seeds = [s for s in study.seeds if any(s in study.seeds_of(arm) for arm in study.arms)]
    return replace(figure, numbers=_curve_numbers(curves, problem.axis, seeds))


def _together(
    curves: Mapping[str, Mapping[str, _Curve]],
    table: Table,
    axis: Axis,
    marks: Mapping[str, Sequence[int]],
    styles: Styles,
) -> tuple[Canvas, list[Told]]:
    """Draw one panel per metric, each with all arms; return the canvas and the tooltip texts."""
    canvas, panels = panelled(len(curves))
    told: list[Told] = []
    for axes, (metric, by_arm) in zip(panels, curves.items(), strict=True):
        shown = table.problem.metric(metric)
        for arm, curve in by_arm.items():
            _draw_curve(axes, table.title_of(arm), curve, shown.scale, styles[arm])
        for mark in {mark for of_arm in marks.values() for mark in of_arm}:
            axes.axvline(mark, color="#666666", linewidth=0.8, linestyle=(0, (2, 2)))
        axes.set_ylabel(wrapped(shown.heading))
        draw_axis(axes, axis)
        scale_values(axes, shown, _ends(by_arm.values(), shown))
        told.append((axes, _told(by_arm, table, shown, axis)))
    legend(canvas, panels[0])
    return canvas, told


def _told(
    by_arm: Mapping[str, _Curve], table: Table, shown: Metric, axis: Axis
) -> dict[float, str]:
    """Return the tooltip of each position: a line with mean and interval for every arm."""
    lines: dict[float, list[str]] = {}
    for title, curve in ((table.title_of(arm), curve) for arm, curve in by_arm.items()):
        for place, summary in curve.summaries.items():
            interval = spell_interval(summary.ci_low, summary.ci_high, shown.scale, shown.digits)
            mean = spell_number(shown.scale * summary.mean, shown.digits)
            lines.setdefault(place, []).append(f"{title} {mean}{interval}")
    unit = axis.label if axis.metric else axis.unit
    return {
        place: "\n".join([f"{shown.heading}, {unit} {place:g}", *lines[place]])
        for place in sorted(lines)
    }


def _multiples(
    curves: Mapping[str, _Curve],
    table: Table,
    axis: Axis,
    marks: Mapping[str, Sequence[int]],
    styles: Styles,
) -> tuple[Canvas, list[Told]]:
    """Draw one panel per arm, each with the baseline's mean in grey, for many arms."""
    shown, columns = table.shown, 4
    rows = math.ceil(len(curves) / columns)
    # Placed by hand, with common limits instead of shared axes: laying out 20 panels takes longer
    # than drawing them.
    canvas = Canvas(figsize=(2 * PANEL_INCHES, 0.5 + 1.45 * rows))
    titles = {arm: textwrap.wrap(table.title_of(arm), 24) for arm in curves}
    headroom = 0.08 + 0.13 * max(map(len, titles.values()))
    bottom, between = 0.5, 0.22 + headroom
    width, height = canvas.get_size_inches()
    grid = canvas.add_gridspec(
        rows, columns, left=0.6 / width, right=1 - 0.08 / width, wspace=0.16,
        bottom=bottom / height, top=1 - headroom / height,
        hspace=rows * between / (height - bottom - headroom - (rows - 1) * between),
    )  # fmt: skip
    panels = [canvas.add_subplot(grid[divmod(place, columns)]) for place in range(len(curves))]
    baseline, ends = curves[table.baseline], _ends(curves.values(), shown)
    for axes, (arm, curve) in zip(panels, curves.items(), strict=True):
        places = list(baseline.summaries)
        means = [shown.scale * summary.mean for summary in baseline.summaries.values()]
        axes.plot(places, means, color="#999999", linewidth=1)
        _draw_curve(axes, arm, curve, shown.scale, (styles[arm][0], "-"))
        for mark in marks[arm]:
            axes.axvline(mark, color="#666666", linewidth=0.6, linestyle=(0, (2, 2)))
        axes.set_title("\n".join(titles[arm]), fontsize=8, y=1.0, pad=3)
        draw_axis(axes, axis)
        axes.set_xlabel("")
        scale_values(axes, shown, ends)
    drawn = [axes for axes in panels if math.isfinite(axes.dataLim.width)] or panels
    lefts, rights = zip(*(axes.get_xlim() for axes in drawn), strict=True)
    lows, highs = zip(*(axes.get_ylim() for axes in drawn), strict=True)
    for place, axes in enumerate(panels):
        axes.set(xlim=(min(lefts), max(rights)), ylim=(min(lows), max(highs)))
        is_left, is_lowest = place % columns == 0, place + columns >= len(curves)
        axes.tick_params(left=is_left, labelleft=is_left, bottom=is_lowest, labelbottom=is_lowest)
    told: list[Told] = [
        (axes, _told({table.baseline: baseline, arm: curve}, table, shown, axis))
        for axes, (arm, curve) in zip(panels, curves.items(), strict=True)
    ]
    canvas.supxlabel(axis.label, fontsize=9, y=0.06 / height, va="bottom")
    canvas.supylabel(shown.heading, fontsize=9, x=0.06 / width, ha="left")
    return canvas, told


def _panels(headline: str, problem: Problem, measured: Collection[str]) -> Iterator[str]:
    """Yield the metric of each panel: the headline metric, then others that were measured."""
    for group in ((headline,), *problem.presentation.curves):
        yield from [metric for metric in group if metric in measured][:1]
    grouped = {metric for group in problem.presentation.curves for metric in group}
    declared = {metric: place for place, metric in enumerate(problem.metrics)}
    beside = {m for m in measured if m.startswith("train/")} - grouped
    yield from sorted(beside, key=lambda metric: (declared.get(metric, len(declared)), metric))


def _spell_left_out(metrics: Sequence[str], problem: Problem) -> str:
    """Return a sentence that lists measured metrics without a panel."""
    if not metrics:
        return ""
    labels = ", ".join(problem.metric(metric).label for metric in metrics)
    return (
        f" With more than {_MOST_TOGETHER} arms, these metrics have no panel: {labels}; "
        "`mixsweep report --epochs FILE` has their values."
    )


def _spell_unmeasured(curves: Mapping[str, Mapping[str, _Curve]], table: Table) -> str:
    """Return sentences that list arms without a curve of a metric that other arms have."""
    drawn = {
        metric: {arm for arm, curve in by_arm.items() if any(map(len, curve.seeds.values()))}
        for metric, by_arm in curves.items()
    }
    begun = set().union(*drawn.values())
    return "".join(
        f" Arms that do not measure {table.problem.metric(metric).label}: "
        f"{', '.join(table.title_of(arm) for arm in curves[metric] if arm in begun - arms)}."
        for metric, arms in drawn.items()
        if begun - arms
    )


def _marks(study: Study, arm: str) -> tuple[int, ...]:
    """Return the numbers of epochs after which a setting of an arm, such as its law, changes."""
    if study.problem.axis.metric is not None:
        return ()
    marks = changes(study.arms[arm])
    return marks if len(marks) <= _MOST_CHANGES else ()


def _curve(by_seed: Mapping[int, RunResult], metric: str, axis: Axis, measure: Measure) -> _Curve:
    seeds, known = {}, dict[tuple[float, ...], dict[float, int]]()
    for seed, result in by_seed.items():
        values = {
            place: record.metrics[metric]
            for record in result.records
            if metric in record.metrics and (place := place_of(record, axis)) is not None
        }
        numbers = {place: number for number, place in enumerate(values)}
        numbers = known.setdefault(tuple(values), numbers)
        seeds[seed] = _Line(numbers, packed([*values.values()]))
    counted = [seeds[seed] for seed in counted_runs(by_seed)]
    places = sorted(set().union(*counted)) if counted else []
    return _Curve(
        seeds=seeds,
        summaries={
            place: summarise([values[place] for values in counted], measure)
            for place in places
            if all(place in values for values in counted)
        },
    )


def _draw_curve(axes: Axes, title: str, curve: _Curve, scale: float, look: LineStyle) -> None:
    colour, _ = look
    num_points = max(map(len, curve.seeds.values()), default=0)
    dots = "o" if num_points <= _MOST_DOTS else ""
    # One line with gaps: hundreds of them take seconds to draw.
    across, heights = array("d"), array("d")
    for values in curve.seeds.values():
        across.extend((*values, math.nan))
        heights.extend((*(scale * value for value in values.values()), math.nan))
    axes.plot(across, heights, color=colour, alpha=0.35, linewidth=0.6, marker=dots, ms=1.5)
    draw_mean(axes, curve.summaries, scale, look, title, dots)


def _ends(curves: Iterable[_Curve], shown: Metric) -> tuple[float, ...]:
    """Return the smallest and the largest value of all seeds, in the drawn unit."""
    return ends_of(
        shown.scale * value
        for curve in curves
        for values in curve.seeds.values()
        for value in values.values()
    )


def _curves_caption(
    table: Table,
    axis: Axis,
    metrics: Sequence[str],
    marks: Mapping[str, Sequence[int]],
    *,
    has_many: bool,
) -> str:
    labels = " and ".join(table.problem.metric(metric).label for metric in metrics)
    places = sorted({mark for of_arm in marks.values() for mark in of_arm})
    marked = (
        f" Dotted vertical lines: settings of an arm, such as its law, change after {axis.unit} "
        f"{', '.join(map(str, places))}."
        if places
        else ""
    )
    notes = "".join(f" {note}" for metric in metrics if (note := table.problem.metric(metric).note))
    grey = f" Grey line: mean of {table.title_of(table.baseline)}." if has_many else ""
    along = axis.label if axis.metric else axis.unit
    return (
        f"{upper_first(labels)} by {along}. Thick line: mean over the complete runs "
        f"({spell_counts(table)}). Band: pointwise 95 % t interval. Thin lines: single seeds, "
        f"including unfinished runs.{grey}{marked}{notes} {table.selection.brief} Nothing was "
        "selected by these curves."
    )


def _curve_numbers(
    curves: Mapping[str, Mapping[str, _Curve]], axis: Axis, seeds: Sequence[int]
) -> str:
    # Frozen: columns of `figures/learning_curves.csv`, which scripts read by name;
    # tests/reports/figures/test_learning_curves.py fails.
    return spell_csv(
        {"metric": metric, "arm": arm, axis.metric or axis.unit: place}
        | numbers_of(curve.summaries.get(place))
        | {f"seed_{seed}": curve.seeds.get(seed, {}).get(place) for seed in seeds}
        for metric, by_arm in curves.items()
        for arm, curve in by_arm.items()
        for place in sorted(set().union(*curve.seeds.values()))
    )
