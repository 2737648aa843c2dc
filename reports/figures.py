"""Figures: learning curves and final values, each with its numbers and its caption."""

import io
import math
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from mixup_core.keys import changes
from mixup_core.problem import Axis, Metric
from mixup_core.records import EpochRecord
from reports.captions import spell_family
from reports.colours import Look
from reports.families import Member
from reports.runs import arrange, counted_runs, values_of
from reports.spelling import (
    spell_csv,
    spell_heading,
    spell_interval,
    spell_number,
    upper_first,
)
from reports.statistics import Summary, summarise
from reports.tables import Table
from sweeps.results import RunResult
from sweeps.study import Study

if TYPE_CHECKING:
    import pandas as pd

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "svg.hashsalt": "mixsweep",
}
"""Sizes in points at print size: a figure is as wide as a page of text."""

PANEL_INCHES = 3.4
"""Width of one panel."""

_MOST_CHANGES = 3
"""An arm that changes more often than this does so all the time, and no line is drawn for it."""

_MOST_TOGETHER = 8
"""Bands of more arms than this hide each other: each arm then has a panel of its own."""

_MOST_ABREAST = 3
"""Panels beside each other; of more than these, each line has as many."""

_LETTER_INCHES = 0.08
"""Width of a letter of a legend, about."""

_DOTS_PER_INCH = 200
"""Of a PNG."""

_MOST_STRIPS = 60
"""Of a panel; of more places, as many are told, evenly spread."""

_MOST_DOTS = 15
"""Curves measured this often or less show where, so that a single epoch is seen at all."""


Told = tuple[Axes, Mapping[float, str]]
"""A panel, and place along it to what stands there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """A part of a figure, and what is drawn there, for a page that is pointed at."""

    left: float
    """Of the width of the figure, in [0, 1], as is `width`."""
    top: float
    """Of its height, as is `height`."""
    width: float
    height: float
    said: str
    """Lines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A drawn figure. The same results give the same bytes."""

    name: str
    """Stem of its files."""
    title: str
    caption: str
    svg: bytes
    png: bytes
    numbers: str
    """Everything drawn, as CSV; metrics as stored, errors as fractions."""
    strips: tuple[Strip, ...] = ()
    """What stands at places along its panels."""

    @property
    def frame(self) -> "pd.DataFrame":
        """The numbers as a DataFrame."""
        import pandas as pd

        return pd.read_csv(io.StringIO(self.numbers))

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows."""
        return self.png


def draw_figures(
    study: Study, results: Iterable[RunResult], table: Table, looks: Mapping[str, Look]
) -> tuple[Figure, ...]:
    """Return the figures of a study, leaving out those for which nothing is stored yet.

    Args:
        study: Decides the arms, the seeds and their order.
        results: Results of its runs, in any order.
        table: Of the same results.
        looks: How each arm is drawn (`reports.colours.arm_looks`).
    """
    arranged = arrange(study, results)
    figures = (
        _learning_curves(study, arranged, table, looks),
        _final_values(arranged, table, looks),
    )
    return tuple(figure for figure in figures if figure is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Curve:
    """One metric of one arm along the axis of its problem."""

    seeds: Mapping[int, Mapping[float, float]]
    """Seed to place to value, runs that are not complete included."""
    summaries: Mapping[float, Summary]
    """Place to the summary over the complete runs; a place that one of them lacks has none."""


def _learning_curves(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    looks: Mapping[str, Look],
) -> Figure | None:
    if all(config.epochs == 1 for config in study.arms.values()):
        return None
    problem = study.problem
    stored = [result.records for by_seed in arranged.values() for result in by_seed.values()]
    measured = {name for records in stored for record in records for name in record.metrics}
    metrics = list(dict.fromkeys(_panels(table.metric, problem.curves, measured)))
    if not metrics:
        return None
    arms = [row.arm for row in table.printed]
    has_many = len(arms) > _MOST_TOGETHER
    if has_many:
        metrics = metrics[:1]
    curves = {
        metric: {arm: _curve(arranged[arm], metric, problem.axis) for arm in arms}
        for metric in metrics
    }
    marks = {arm: _marks(study, arm) for arm in arms}
    with mpl.rc_context(STYLE):
        if has_many:
            canvas, told = _multiples(curves[metrics[0]], table, problem.axis, marks, looks)
        else:
            canvas, told = _together(curves, table, problem.axis, marks, looks)
        return finished(
            canvas,
            told=told,
            name="learning_curves",
            title="Learning curves",
            caption=_curves_caption(table, problem.axis, metrics, marks, has_many=has_many),
            numbers=_curve_numbers(curves, problem.axis, study.seeds),
        )


def _together(
    curves: Mapping[str, Mapping[str, _Curve]],
    table: Table,
    axis: Axis,
    marks: Mapping[str, Sequence[int]],
    looks: Mapping[str, Look],
) -> tuple[Canvas, list[Told]]:
    """Return one panel per metric with all arms in each, and what stands along it."""
    canvas, panels = panelled(len(curves))
    told: list[Told] = []
    for axes, (metric, by_arm) in zip(panels, curves.items(), strict=True):
        shown = table.problem.metric(metric)
        for arm, curve in by_arm.items():
            _draw_curve(axes, table.title_of(arm), curve, shown.scale, looks[arm])
        for mark in {mark for of_arm in marks.values() for mark in of_arm}:
            axes.axvline(mark, color="#666666", linewidth=0.8, linestyle=(0, (2, 2)))
        axes.set_ylabel(wrapped(shown.heading))
        draw_axis(axes, axis)
        clip(axes, shown)
        told.append((axes, _told(by_arm, shown, axis)))
    legend(canvas, panels[0])
    return canvas, told


def _told(by_arm: Mapping[str, _Curve], shown: Metric, axis: Axis) -> dict[float, str]:
    """Return place to the means and intervals of all arms there, in lines under what it is."""
    lines: dict[float, list[str]] = {}
    for arm, curve in by_arm.items():
        for place, summary in curve.summaries.items():
            interval = spell_interval(summary.ci_low, summary.ci_high, shown.scale, shown.digits)
            mean = spell_number(shown.scale * summary.mean, shown.digits)
            lines.setdefault(place, []).append(f"{arm} {mean}{interval}")
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
    looks: Mapping[str, Look],
) -> tuple[Canvas, list[Told]]:
    """Return one panel per arm, the mean of the baseline in each: more arms than lie together."""
    shown, columns = table.shown, 4
    rows = math.ceil(len(curves) / columns)
    # Placed by hand, with common limits in place of shared axes: laying 20 panels out takes longer
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
    baseline = curves[table.baseline]
    for axes, (arm, curve) in zip(panels, curves.items(), strict=True):
        places = list(baseline.summaries)
        means = [shown.scale * summary.mean for summary in baseline.summaries.values()]
        axes.plot(places, means, color="#999999", linewidth=1)
        _draw_curve(axes, arm, curve, shown.scale, (looks[arm][0], "-"))
        for mark in marks[arm]:
            axes.axvline(mark, color="#666666", linewidth=0.6, linestyle=(0, (2, 2)))
        axes.set_title("\n".join(titles[arm]), fontsize=8, y=1.0, pad=3)
        draw_axis(axes, axis)
        axes.set_xlabel("")
    drawn = [axes for axes in panels if math.isfinite(axes.dataLim.width)] or panels
    lefts, rights = zip(*(axes.get_xlim() for axes in drawn), strict=True)
    lows, highs = zip(*(axes.get_ylim() for axes in drawn), strict=True)
    for place, axes in enumerate(panels):
        axes.set(xlim=(min(lefts), max(rights)), ylim=(min(lows), max(highs)))
        clip(axes, shown)
        axes.tick_params(labelleft=place % columns == 0, labelbottom=place + columns >= len(curves))
    told: list[Told] = [
        (axes, _told({table.baseline: baseline, arm: curve}, shown, axis))
        for axes, (arm, curve) in zip(panels, curves.items(), strict=True)
    ]
    canvas.supxlabel(axis.label, fontsize=9, y=0.06 / height, va="bottom")
    canvas.supylabel(shown.heading, fontsize=9, x=0.06 / width, ha="left")
    return canvas, told


def _panels(
    headline: str, groups: Sequence[Sequence[str]], measured: Collection[str]
) -> Iterator[str]:
    """Yield the metric of each panel: the headline, then of each group the first measured."""
    for group in ((headline,), *groups):
        yield from [metric for metric in group if metric in measured][:1]


def _marks(study: Study, arm: str) -> tuple[int, ...]:
    """Return the numbers of records after which an arm changes, if it does so seldom.

    An axis that is no count of records has no marks.
    """
    if study.problem.axis.metric is not None:
        return ()
    marks = changes(study.arms[arm])
    return marks if len(marks) <= _MOST_CHANGES else ()


def draw_axis(axes: Axes, axis: Axis) -> None:
    """Label and scale the axis that the records of a problem stand along."""
    axes.set_xlabel(axis.label)
    if axis.scale == "log":
        axes.set_xscale("log")
        return
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=axis.metric is None, nbins=6))


def _curve(by_seed: Mapping[int, RunResult], metric: str, axis: Axis) -> _Curve:
    seeds = {
        seed: {
            place: record.metrics[metric]
            for record in result.records
            if metric in record.metrics and (place := place_of(record, axis)) is not None
        }
        for seed, result in by_seed.items()
    }
    counted = [seeds[seed] for seed in counted_runs(by_seed)]
    places = sorted(set().union(*counted)) if counted else []
    return _Curve(
        seeds=seeds,
        summaries={
            place: summarise([values[place] for values in counted])
            for place in places
            if all(place in values for values in counted)
        },
    )


def place_of(record: EpochRecord, axis: Axis) -> float | None:
    """Return where a record stands on the axis; None if it does not say."""
    return record.epoch + 1 if axis.metric is None else record.metrics.get(axis.metric)


def _draw_curve(axes: Axes, title: str, curve: _Curve, scale: float, look: Look) -> None:
    colour, dashes = look
    num_points = max(map(len, curve.seeds.values()), default=0)
    dots = "o" if num_points <= _MOST_DOTS else ""
    # One line with gaps: hundreds of them take seconds to draw.
    thin = [
        (place, scale * value)
        for values in curve.seeds.values()
        for place, value in (*values.items(), (math.nan, math.nan))
    ]
    across, heights = zip(*thin, strict=True) if thin else ((), ())
    axes.plot(across, heights, color=colour, alpha=0.35, linewidth=0.6, marker=dots, ms=1.5)
    places = list(curve.summaries)
    means = [scale * summary.mean for summary in curve.summaries.values()]
    axes.plot(places, means, color=colour, linestyle=dashes, label=title, marker=dots, ms=3)
    banded = {
        place: (scale * summary.ci_low, scale * summary.ci_high)
        for place, summary in curve.summaries.items()
        if summary.ci_low is not None and summary.ci_high is not None
    }
    lows, highs = zip(*banded.values(), strict=True) if banded else ((), ())
    axes.fill_between(list(banded), lows, highs, color=colour, alpha=0.18, linewidth=0)


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
        f" Dotted vertical lines: an arm goes on in another way from {axis.unit} "
        f"{', '.join(map(str, places))} on."
        if places
        else ""
    )
    notes = "".join(f" {note}" for metric in metrics if (note := table.problem.metric(metric).note))
    grey = f" Grey: mean of {table.baseline}." if has_many else ""
    along = axis.label if axis.metric else axis.unit
    return (
        f"{upper_first(labels)} by {along}. Thick: mean over complete runs "
        f"({spell_counts(table)}); band: pointwise 95 % t interval; thin: every seed, unfinished "
        f"ones included.{grey}{marked}{notes} {table.selection.brief}; nothing is chosen "
        "from these curves."
    )


def _curve_numbers(
    curves: Mapping[str, Mapping[str, _Curve]], axis: Axis, seeds: Sequence[int]
) -> str:
    return spell_csv(
        [
            {"metric": metric, "arm": arm, axis.metric or axis.unit: place}
            | _numbers_of(curve.summaries.get(place))
            | {f"seed_{seed}": curve.seeds[seed].get(place) for seed in seeds}
            for metric, by_arm in curves.items()
            for arm, curve in by_arm.items()
            for place in sorted(set().union(*curve.seeds.values()))
        ]
    )


def _final_values(
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    looks: Mapping[str, Look],
) -> Figure | None:
    names = {row.arm: name for row, (name, *_) in zip(table.printed, table.cells, strict=True)}
    found = values_of(arranged, table.metric, table.readout)
    finals = {arm: found[arm] for arm in names}
    if not any(finals.values()):
        return None
    baseline = finals[table.baseline]
    compared = {row.arm: row.compared for row in table.printed if row.compared is not None}
    differences = {
        arm: {
            seed: value - baseline[seed] for seed, value in finals[arm].items() if seed in baseline
        }
        for arm in compared
    }
    shown = table.shown
    means = {
        "value": {arm: _mean_of(values) for arm, values in finals.items() if values},
        "difference": {arm: _mean_of_pairs(member) for arm, member in compared.items()},
    }
    panels = {"value": finals, "difference": differences}
    if not differences:
        del panels["difference"]
    with mpl.rc_context(STYLE):
        height = 0.9 + 0.42 * len(finals)
        canvas = Canvas(
            figsize=(PANEL_INCHES * max(1.3, len(panels)), height), layout="constrained"
        )
        drawn = canvas.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (what, values) in zip(drawn, panels.items(), strict=True):
            colours = {arm: looks[arm][0] for arm in finals if arm in means[what]}
            _draw_dots(axes, list(finals), values, means[what], shown.scale, colours)
            axes.grid(visible=False, axis="y")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        labels = ["\n".join(textwrap.wrap(name, 32)) for name in names.values()]
        drawn[0].set_yticks(range(len(finals)), labels)
        drawn[0].set_ylim(len(finals) - 0.4, -0.6)
        drawn[0].set_xlabel(f"final {shown.heading}")
        clip(drawn[0], shown, across=True)
        if differences:
            drawn[1].axvline(0, color="#333333", linewidth=0.8)
            heading = spell_heading(f"minus {table.baseline} at the same seed", shown)
            drawn[1].set_xlabel(wrapped(heading))
        return finished(
            canvas,
            name="final_values",
            title=f"Final {shown.label}",
            caption=_final_caption(table, shown, has_differences=bool(differences)),
            numbers=_final_numbers(panels, means),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mean:
    """A mean with its interval, in the unit of the metric."""

    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None


def _mean_of(values: Mapping[int, float]) -> _Mean:
    s = summarise(list(values.values()))
    return _Mean(n=s.n, mean=s.mean, ci_low=s.ci_low, ci_high=s.ci_high)


def _mean_of_pairs(member: Member) -> _Mean:
    """Return the mean difference with the interval of the table."""
    comparison = member.comparison
    return _Mean(n=comparison.n, mean=comparison.difference, ci_low=member.low, ci_high=member.high)


def _draw_dots(  # noqa: PLR0913  what is drawn, where and how
    axes: Axes,
    arms: Sequence[str],
    values: Mapping[str, Mapping[int, float]],
    means: Mapping[str, _Mean],
    scale: float,
    colours: Mapping[str, str],
) -> None:
    """Draw each arm at its place: a dot per seed, and its mean with an interval below them."""
    dots = [
        (scale * value, place + 0.17, colours[arm])
        for place, arm in enumerate(arms)
        if arm in means
        for value in values[arm].values()
    ]
    across, heights, shades = zip(*dots, strict=True)
    axes.scatter(across, heights, s=14, c=shades, alpha=0.55, linewidth=0)
    for place, arm in enumerate(arms):
        if (mean := means.get(arm)) is None:
            continue
        half = None if mean.ci_high is None else scale * (mean.ci_high - mean.mean)
        axes.errorbar(
            scale * mean.mean, place - 0.1, xerr=half, fmt="o", ms=5, color=colours[arm],
            capsize=2.5,
        )  # fmt: skip


def _final_caption(table: Table, shown: Metric, *, has_differences: bool) -> str:
    paired = (
        f" Right: difference from {table.baseline} at the same seed, {spell_family(table.family)}; "
        "the line is no difference."
        if has_differences
        else ""
    )
    return (
        f"{upper_first(shown.label)}, {table.readout}: one small dot per seed, the mean and its "
        f"95 % t interval ({spell_counts(table)}).{paired} {table.selection.brief}, "
        f"{table.readout}."
    )


def _final_numbers(
    panels: Mapping[str, Mapping[str, Mapping[int, float]]],
    means: Mapping[str, Mapping[str, _Mean]],
) -> str:
    records: list[dict[str, Any]] = []
    for shown, by_arm in panels.items():
        for arm, values in by_arm.items():
            place = {"shown": shown, "arm": arm}
            for seed, value in values.items():
                records.append(place | {"seed": seed, "value": value} | _numbers_of(None))
            if arm in means[shown]:
                mean = _numbers_of(means[shown][arm])
                records.append(place | {"seed": None, "value": None} | mean)
    return spell_csv(records)


def _numbers_of(summary: Summary | _Mean | None) -> dict[str, Any]:
    names = ("n", "mean", "ci_low", "ci_high")
    return {name: getattr(summary, name, None) for name in names}


def spell_counts(table: Table) -> str:
    """Return the seeds of each arm, or once what most of them have in common."""
    counts = Counter(row.seeds for row in table.printed)
    ((common, times),) = counts.most_common(1)
    if times == 1 or 2 * times < len(table.printed):
        return ", ".join(f"{row.arm} n = {row.seeds}" for row in table.printed)
    others = [f"{row.arm} n = {row.seeds}" for row in table.printed if row.seeds != common]
    return f"each arm n = {common}" + (f" but {', '.join(others)}" if others else "")


def panelled(count: int, *, height: float = 2.4) -> tuple[Canvas, list[Axes]]:
    """Return a canvas with so many panels, in lines of equal numbers, and its panels.

    Args:
        count: At least 1.
        height: Of a line of panels, in inches.
    """
    rows = math.ceil(count / _MOST_ABREAST)
    columns = math.ceil(count / rows)
    size = PANEL_INCHES * max(1.3, columns), 0.5 + height * rows
    canvas = Canvas(figsize=size, layout="constrained")
    panels = list(canvas.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return canvas, panels[:count]


def legend(canvas: Canvas, axes: Axes) -> None:
    """Put the legend of a panel above the figure, as many entries beside each other as fit."""
    handles, labels = axes.get_legend_handles_labels()
    widest = max((len(label) for label in labels), default=1) + 6
    columns = int(canvas.get_figwidth() / (widest * _LETTER_INCHES))
    canvas.legend(
        handles, labels, loc="outside upper center", ncols=max(1, min(len(labels), columns))
    )


def wrapped(heading: str) -> str:
    """Return the label of an axis in lines that a panel is long enough for."""
    return "\n".join(textwrap.wrap(heading, 34))


def clip(axes: Axes, metric: Metric, *, across: bool = False) -> None:
    """Keep an axis of percent within 0 and 100, which bands and intervals may leave."""
    if metric.unit != "%":
        return
    low, high = axes.get_xlim() if across else axes.get_ylim()
    limit = axes.set_xlim if across else axes.set_ylim
    limit(max(0.0, low), min(100.0, high))


def finished(  # noqa: PLR0913  what a figure is made of
    canvas: Canvas,
    *,
    name: str,
    title: str,
    caption: str,
    numbers: str,
    told: Sequence[Told] = (),
) -> Figure:
    """Return a drawn canvas as a figure, without dates inside.

    Args:
        canvas: All of it, not laid out yet.
        name: Stem of its files.
        title: Of the figure.
        caption: Beneath it.
        numbers: Everything drawn, as CSV.
        told: Panels, with what stands at places along them.
    """
    if (engine := canvas.get_layout_engine()) is not None:
        engine.execute(canvas)
        canvas.set_layout_engine("none")  # laid out once, not again for each format
    strips = tuple(strip for axes, places in told for strip in _strips(canvas, axes, places))
    svg, png = io.BytesIO(), io.BytesIO()
    # `savefig` would draw each format once more, to lay it out.
    FigureCanvasSVG(canvas).print_svg(svg, metadata={"Date": None, "Creator": None})
    canvas.set_dpi(_DOTS_PER_INCH)
    FigureCanvasAgg(canvas).print_png(png, metadata={"Software": None})
    return Figure(
        name=name,
        title=title,
        caption=caption,
        svg=svg.getvalue(),
        png=png.getvalue(),
        numbers=numbers,
        strips=strips,
    )


def _strips(canvas: Canvas, axes: Axes, places: Mapping[float, str]) -> Iterator[Strip]:
    """Yield a strip for each place along a panel, from halfway to the last to halfway to the next.

    They are rounded: the same figure gives the same page on machines whose fonts differ by little.
    """
    if not places:
        return
    count, every = min(len(places), _MOST_STRIPS), list(places)
    kept = [every[(number + 1) * len(every) // count - 1] for number in range(count)]
    box, width, low = axes.get_position(), canvas.bbox.width, axes.get_ylim()[0]
    at = [axes.transData.transform((place, low))[0] / width for place in kept]
    bounds = [box.x0, *((left + right) / 2 for left, right in pairwise(at)), box.x1]
    for place, (left, right) in zip(kept, pairwise(bounds), strict=True):
        yield Strip(
            left=round(float(left), 4),
            top=round(float(1 - box.y1), 4),
            width=round(float(right - left), 4),
            height=round(float(box.height), 4),
            said=places[place],
        )
