"""Figures: learning curves and final errors, each with its numbers and its caption."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from mixup_core.keys import changes
from reports.captions import SELECTION_RULE
from reports.metrics import show
from reports.runs import arrange, counted_runs
from reports.spelling import spell_csv
from reports.statistics import Summary, summarise
from reports.tables import Table
from sweeps.results import RunResult
from sweeps.study import Study

# Okabe and Ito's palette, told apart by colour-blind readers; yellow is too faint for lines.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"
_OTHERS = ("#CC79A7", "#56B4E9", "#D55E00", "#000000")
_FIXED = {"erm": _BLUE, "midpoint": _ORANGE, "uniform": _GREEN}
_DASHES = ("-", "--", ":", "-.")

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

_MOST_DOTS = 15
"""Curves measured this often or less show where, so that a single epoch is seen at all."""


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


def draw_figures(study: Study, results: Iterable[RunResult], table: Table) -> tuple[Figure, ...]:
    """Return the figures of a study, leaving out those for which nothing is stored yet."""
    arranged = arrange(study, results)
    looks = arm_looks(study.arms)
    figures = (
        _learning_curves(study, arranged, table, looks),
        _final_error(arranged, table, looks),
    )
    return tuple(figure for figure in figures if figure is not None)


def arm_looks(arms: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the colour and dashes of each arm, the same in every figure of a study.

    ERM is blue, midpoint orange and uniform green wherever they appear; the other arms take the
    remaining colours in their order, with other dashes each time round.
    """
    arms = tuple(arms)
    free = [*_OTHERS, *(colour for arm, colour in _FIXED.items() if arm not in arms)]
    looks = {arm: (_FIXED[arm], "-") for arm in arms if arm in _FIXED}
    for place, arm in enumerate(arm for arm in arms if arm not in _FIXED):
        turn, colour = divmod(place, len(free))
        looks[arm] = (free[colour], _DASHES[turn % len(_DASHES)])
    return looks


@dataclass(frozen=True, kw_only=True, slots=True)
class _Curve:
    """One metric of one arm by epoch."""

    seeds: Mapping[int, Mapping[int, float]]
    """Seed to epochs finished to value, runs that are not complete included."""
    summaries: Mapping[int, Summary]
    """Epochs finished to the summary over the complete runs."""


def _learning_curves(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    looks: Mapping[str, tuple[str, str]],
) -> Figure | None:
    stored = [result.records for by_seed in arranged.values() for result in by_seed.values()]
    measured = {name for records in stored for record in records for name in record.metrics}
    has_excess = "train/excess_loss" in measured
    wanted = (table.metric, "train/excess_loss" if has_excess else "train/loss")
    metrics = [metric for metric in wanted if metric in measured]
    if not metrics:
        return None
    switches = sorted({switch for config in study.arms.values() for switch in changes(config)})
    curves = {
        metric: {arm: _curve(by_seed, metric) for arm, by_seed in arranged.items()}
        for metric in metrics
    }
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(PANEL_INCHES * len(metrics), 2.9), layout="constrained")
        panels = canvas.subplots(1, len(metrics), squeeze=False)[0]
        for axes, metric in zip(panels, metrics, strict=True):
            for arm, curve in curves[metric].items():
                _draw_curve(axes, arm, curve, show(metric).scale, looks[arm])
            for switch in switches:
                axes.axvline(switch, color="#666666", linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set_xlabel("epochs trained")
            axes.set_ylabel(show(metric).heading)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        legend(canvas, panels[0])
        return finished(
            canvas,
            name="learning_curves",
            title="Learning curves",
            caption=_curves_caption(table, metrics, switches),
            numbers=_curve_numbers(curves, study.seeds),
        )


def _curve(by_seed: Mapping[int, RunResult], metric: str) -> _Curve:
    seeds = {
        seed: {
            record.epoch + 1: record.metrics[metric]
            for record in result.records
            if metric in record.metrics
        }
        for seed, result in by_seed.items()
    }
    counted = [seeds[seed] for seed in counted_runs(by_seed)]
    epochs = sorted(set().union(*counted)) if counted else []
    return _Curve(
        seeds=seeds,
        summaries={
            epoch: summarise([values[epoch] for values in counted])
            for epoch in epochs
            if all(epoch in values for values in counted)
        },
    )


def _draw_curve(axes: Axes, arm: str, curve: _Curve, scale: float, look: tuple[str, str]) -> None:
    colour, dashes = look
    num_points = max(map(len, curve.seeds.values()), default=0)
    dots = "o" if num_points <= _MOST_DOTS else ""
    for values in curve.seeds.values():
        heights = [scale * value for value in values.values()]
        axes.plot(
            list(values), heights, color=colour, alpha=0.35, linewidth=0.6, marker=dots, ms=1.5
        )
    epochs = list(curve.summaries)
    means = [scale * summary.mean for summary in curve.summaries.values()]
    axes.plot(epochs, means, color=colour, linestyle=dashes, label=arm, marker=dots, ms=3)
    banded = {
        epoch: (scale * summary.ci_low, scale * summary.ci_high)
        for epoch, summary in curve.summaries.items()
        if summary.ci_low is not None and summary.ci_high is not None
    }
    lows, highs = zip(*banded.values(), strict=True) if banded else ((), ())
    axes.fill_between(list(banded), lows, highs, color=colour, alpha=0.18, linewidth=0)


def _curves_caption(table: Table, metrics: Sequence[str], switches: Sequence[int]) -> str:
    labels = " and ".join(show(metric).label for metric in metrics)
    marked = f" Dotted vertical line: switch epoch {', '.join(map(str, switches))}."
    excess = (
        " Excess: above the entropy of the mixed labels, the least that any network can reach."
        if "train/excess_loss" in metrics
        else ""
    )
    return (
        f"{labels[0].upper()}{labels[1:]} by epoch. Thick: mean over complete runs "
        f"({_spell_counts(table)}); band: pointwise 95 % t interval; thin: every seed, unfinished "
        f"ones included.{marked if switches else ''}{excess} Selection "
        f"rule {SELECTION_RULE}: nothing is chosen from these curves."
    )


def _curve_numbers(curves: Mapping[str, Mapping[str, _Curve]], seeds: Sequence[int]) -> str:
    return spell_csv(
        [
            {"metric": metric, "arm": arm, "epoch": epoch}
            | _numbers_of(curve.summaries.get(epoch))
            | {f"seed_{seed}": curve.seeds[seed].get(epoch) for seed in seeds}
            for metric, by_arm in curves.items()
            for arm, curve in by_arm.items()
            for epoch in sorted(set().union(*curve.seeds.values()))
        ]
    )


def _final_error(
    arranged: Mapping[str, Mapping[int, RunResult]],
    table: Table,
    looks: Mapping[str, tuple[str, str]],
) -> Figure | None:
    finals = {
        arm: {
            seed: result.records[-1].metrics[table.metric]
            for seed, result in counted_runs(by_seed).items()
            if table.metric in result.records[-1].metrics
        }
        for arm, by_seed in arranged.items()
    }
    if not any(finals.values()):
        return None
    baseline = finals[table.baseline]
    differences = {
        arm: {seed: value - baseline[seed] for seed, value in values.items() if seed in baseline}
        for arm, values in finals.items()
        if any(row.arm == arm and row.comparison for row in table.rows)
    }
    panels: dict[str, Mapping[str, Mapping[int, float]]] = {"error": finals}
    if differences:
        panels["difference"] = differences
    shown = show(table.metric)
    with mpl.rc_context(STYLE):
        height = 0.9 + 0.42 * len(finals)
        canvas = Canvas(figsize=(PANEL_INCHES * len(panels), height), layout="constrained")
        drawn = canvas.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, values in zip(drawn, panels.values(), strict=True):
            for place, arm in enumerate(finals):
                _draw_dots(axes, place, values.get(arm, {}), shown.scale, looks[arm][0])
            axes.grid(visible=False, axis="y")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
        drawn[0].set_yticks(range(len(finals)), list(finals))
        drawn[0].set_ylim(len(finals) - 0.4, -0.6)
        drawn[0].set_xlabel(f"final {shown.heading}")
        if differences:
            drawn[1].axvline(0, color="#333333", linewidth=0.8)
            drawn[1].set_xlabel(f"minus {table.baseline} at the same seed, points")
        return finished(
            canvas,
            name="final_error",
            title="Final error",
            caption=_final_caption(table, has_differences=bool(differences)),
            numbers=_final_numbers(panels),
        )


def _draw_dots(
    axes: Axes, place: int, values: Mapping[int, float], scale: float, colour: str
) -> None:
    if not values:
        return
    heights = [scale * value for value in values.values()]
    axes.scatter(
        heights, [place + 0.17] * len(heights), s=14, color=colour, alpha=0.55, linewidth=0
    )
    summary = summarise(list(values.values()))
    half = None if summary.half_width is None else scale * summary.half_width
    axes.errorbar(
        scale * summary.mean, place - 0.1, xerr=half, fmt="o", ms=5, color=colour, capsize=2.5
    )


def _final_caption(table: Table, *, has_differences: bool) -> str:
    paired = (
        f" Right: difference from {table.baseline} at the same seed; the line is no difference."
        if has_differences
        else ""
    )
    return (
        f"{show(table.metric).label.capitalize()} of the last epoch: one small dot per seed, the "
        f"mean and its 95 % t interval ({_spell_counts(table)}).{paired} "
        f"Selection rule {SELECTION_RULE}: arms fixed in advance, last epoch."
    )


def _final_numbers(panels: Mapping[str, Mapping[str, Mapping[int, float]]]) -> str:
    records: list[dict[str, Any]] = []
    for shown, by_arm in panels.items():
        for arm, values in by_arm.items():
            place = {"shown": shown, "arm": arm}
            for seed, value in values.items():
                records.append(place | {"seed": seed, "value": value} | _numbers_of(None))
            if values:
                summary = summarise(list(values.values()))
                records.append(place | {"seed": None, "value": None} | _numbers_of(summary))
    return spell_csv(records)


def _numbers_of(summary: Summary | None) -> dict[str, Any]:
    names = ("n", "mean", "ci_low", "ci_high")
    return {name: getattr(summary, name, None) for name in names}


def _spell_counts(table: Table) -> str:
    return ", ".join(f"{row.arm} n = {row.seeds}" for row in table.rows)


def legend(canvas: Canvas, axes: Axes) -> None:
    """Put the legend of a panel above the figure."""
    handles, labels = axes.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 5))


def finished(canvas: Canvas, *, name: str, title: str, caption: str, numbers: str) -> Figure:
    """Return a drawn canvas as a figure, without dates inside."""
    svg, png = io.BytesIO(), io.BytesIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    canvas.savefig(png, format="png", dpi=200, metadata={"Software": None})
    return Figure(
        name=name,
        title=title,
        caption=caption,
        svg=svg.getvalue(),
        png=png.getvalue(),
        numbers=numbers,
    )
