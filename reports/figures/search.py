"""Figures of a search: map of two parameters, history, slices and importance."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from mixup_core.keys import stage_keys
from mixup_core.tree.building import with_values
from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    finished,
    legend,
    scale_values,
    styled,
    tick_logarithms,
)
from reports.figures.colours import Look
from reports.numbers.spelling import spell_csv
from reports.numbers.statistics import expected_lowest
from reports.tables.searched import Searched
from sweeps.searching.selection import pareto_front
from sweeps.study.search import Point, Search
from sweeps.study.space import Categorical, Integer, Parameter, Real, Space

_POINTS = "#555555"
_WINNER = "#D55E00"
_LETTERS = 36
"""Letters that the labels of an axis as wide as a panel can hold, about."""
_MOST_TICKS = 6
_MARGIN = 0.05
"""Margin of a map beyond each bound of its parameters, as a part of the range."""

Edge = Literal["low", "high"]


def draw_search(searched: Searched, looks: Mapping[str, Look]) -> tuple[Figure, ...]:
    """Return the figures of a search, leaving out those for which no point is complete yet.

    A point whose runs the store has lost is not drawn.

    Args:
        searched: What the search has found.
        looks: How each arm is drawn (`reports.figures.colours.arm_looks`).
    """
    points = [point for point in searched.history.points if point.state == "complete"]
    complete = [point for point in points if searched.summary(point.arm) is not None]
    if not complete:
        return ()
    figures = (
        _map(searched, complete, looks),
        _history(searched, complete, looks),
        _slices(searched, complete),
        _importance(searched),
        _front(searched, complete),
    )
    return tuple(figure for figure in figures if figure is not None)


def _map(searched: Searched, complete: Sequence[Point], looks: Mapping[str, Look]) -> Figure | None:
    """Return the map: mean by colour, sd over seeds written beside each point."""
    plane = _plane(searched.search.space)
    if plane is None:
        return None
    across, up = plane
    shown = [point for point in complete if {across.path, up.path} <= point.values.keys()]
    if not shown:
        return None
    scale = searched.shown.scale
    bands = [
        (edge, arm, scale * summary.mean)
        for edge, arm in _edges(searched, across).items()
        if (summary := searched.summary(arm)) is not None
    ]
    means = [scale * point.objectives[0] for point in shown]
    coloured = [*means, *(mean for _, _, mean in bands)]
    with styled():
        canvas = Canvas(figsize=(2 * PANEL_INCHES, 3.6), layout="constrained")
        axes = canvas.subplots()
        colours = mpl.colormaps["viridis"]
        norm = mpl.colors.Normalize(min(coloured), max(coloured))
        _mark(axes.xaxis, across)
        _mark(axes.yaxis, up)
        for edge, arm, mean in bands:
            outer, inner = _beyond(across, edge, _MARGIN), _beyond(across, edge, _MARGIN / 2)
            axes.axvspan(outer, inner, color=colours(norm(mean)), linewidth=0)
            axes.annotate(
                arm, (inner, 0.5), xycoords=axes.get_xaxis_transform(), rotation=90, va="center",
                ha="left" if edge == "low" else "right", fontsize=8, color=looks[arm][0],
            )  # fmt: skip
        beside = []
        for mean, point in sorted(zip(means, shown, strict=True), key=itemgetter(0)):
            x, y = (_place(axis, point.values[axis.path]) for axis in plane)
            selected = point == searched.winner
            axes.scatter(
                [x], [y], s=90, color=[colours(norm(mean))], zorder=3,
                edgecolor=_WINNER if selected else "white", linewidth=2.2 if selected else 0.6,
            )  # fmt: skip
            beside.append(
                axes.annotate(
                    _spell_cell(searched, point), (x, y), xytext=(7, 3),
                    textcoords="offset points", fontsize=6.5,
                )
            )  # fmt: skip
        pruned = [
            [_place(axis, point.values[axis.path]) for axis in plane]
            for point in searched.history.points
            if point.state == "pruned" and {across.path, up.path} <= point.values.keys()
        ]
        axes.scatter(
            [x for x, _ in pruned], [y for _, y in pruned], marker="x", s=25, color=_POINTS
        )
        bar = canvas.colorbar(mpl.cm.ScalarMappable(norm, colours), ax=axes)
        bar.set_label(searched.shown.heading)
        _keep_apart(canvas, beside)
        told = "".join(
            f" Band at {across.path} {_bound(across, edge):g}: {arm}, which every point there is."
            for edge, arm, _ in bands
        )
        crosses = " Crosses: pruned." if pruned else ""
        unset = "".join(
            f" null: {axis.path} is not set."
            for axis in plane
            if isinstance(axis.distribution, Categorical) and None in axis.distribution.choices
        )
        return finished(
            canvas,
            name="search_map",
            title=f"Map of {across.path} and {up.path}",
            caption=f"Each point: mean of last-epoch {searched.shown.label} over "
            f"{_spell_seeds(searched)} by colour, mean and sd over seeds beside it where there is "
            f"room, the lowest first.{told}{crosses}{unset} Framed: selected by "
            f"{searched.search.strategy.select} among {len(searched.history.points)} points tried.",
            numbers=spell_csv([_numbers(searched, point) for point in searched.history.points]),
        )


def _plane(space: Space) -> tuple[Parameter, Parameter] | None:
    """Return the parameters of both axes: the first two numbers, one drawn in logarithms up."""
    numbers = [p for p in space.parameters if _is_number(p)]
    if len(numbers) < 2:
        return None
    up = next((parameter for parameter in numbers if _is_log(parameter)), numbers[1])
    across = next(parameter for parameter in numbers if parameter != up)
    return across, up


def _is_number(parameter: Parameter) -> bool:
    """Return whether the values are numbers, listed ones and None for an optional one included."""
    if not isinstance(parameter.distribution, Categorical):
        return True
    numbers = set(parameter.distribution.choices) - {None}
    are_numbers = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    return bool(numbers) and are_numbers and len(parameter.distribution.choices) > 1


def _mark(axis: Axis, parameter: Parameter) -> None:
    """Scale, bound, tick and label an axis for a parameter, with no two labels on each other."""
    axis.set_label_text(parameter.path)
    name = "x" if axis is axis.axes.xaxis else "y"
    if isinstance(parameter.distribution, Categorical):
        choices = parameter.distribution.choices
        broad = max(4, _LETTERS // len(choices))
        named = ["null" if choice is None else str(choice) for choice in choices]
        axis.set_ticks(range(len(choices)), ["\n".join(textwrap.wrap(n, broad)) for n in named])
        axis.axes.set(**{f"{name}lim": (-0.5, len(choices) - 0.5)})
        return
    limits = _beyond(parameter, "low", _MARGIN), _beyond(parameter, "high", _MARGIN)
    if _is_log(parameter):
        axis.axes.set(**{f"{name}scale": "log"})  # this resets ticks and labels
        tick_logarithms(axis)
    elif isinstance(parameter.distribution, Integer):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=_MOST_TICKS))
    axis.axes.set(**{f"{name}lim": limits})


def _is_log(parameter: Parameter) -> bool:
    return isinstance(parameter.distribution, Real) and parameter.distribution.is_log


def _bound(parameter: Parameter, edge: Edge) -> float:
    assert not isinstance(parameter.distribution, Categorical)
    return float(getattr(parameter.distribution, edge))


def _beyond(parameter: Parameter, edge: Edge, part: float) -> float:
    """Return the place outside of a bound by a part of the whole range, as it is drawn."""
    low, high = _bound(parameter, "low"), _bound(parameter, "high")
    away = -part if edge == "low" else 1 + part
    if _is_log(parameter):
        return float(low * (high / low) ** away)
    return low + (high - low) * away


def _edges(searched: Searched, across: Parameter) -> dict[Edge, str]:
    """Return the ends of an axis at which all points are one arm, with that arm.

    They are if an arm computes what the point there computes, whichever extremes the other
    parameters have.
    """
    if isinstance(across.distribution, Categorical):
        return {}
    search, arms = searched.search, searched.study.arms
    edges: tuple[Edge, ...] = ("low", "high")
    found: dict[Edge, str] = {}
    for edge in edges:
        value = getattr(across.distribution, edge)
        keys = {_final_key(search, {across.path: value}, which) for which in (0, -1)}
        for arm in searched.baselines:
            alike = with_values(arms[arm], {"seed": search.base.seed})
            if keys == {stage_keys(alike)[-1]}:
                found.setdefault(edge, arm)
    return found


def _final_key(search: Search, fixed: Mapping[str, Any], which: int) -> str | None:
    """Return the key of a whole run of a point; None if its values cannot stand together."""

    def draw(parameter: Parameter) -> Any:
        return fixed.get(parameter.path, parameter.distribution.extremes[which])

    with suppress(ValueError, KeyError):
        return stage_keys(search.config_of(search.space.draw(draw)))[-1]
    return None


def _keep_apart(canvas: Canvas, texts: Sequence[Text]) -> None:
    """Hide each text that would lie over an earlier one."""
    canvas.draw_without_rendering()
    boxes: list[Bbox] = []
    for text in texts:
        box = text.get_window_extent()
        text.set_visible(not any(box.overlaps(other) for other in boxes))
        if text.get_visible():
            boxes.append(box)


def _history(searched: Searched, complete: Sequence[Point], looks: Mapping[str, Look]) -> Figure:
    """Return every point in the order of asking, and the best mean so far."""
    scale = searched.shown.scale
    best: list[float] = []
    for point in complete:
        best.append(min([scale * point.objectives[0], *best[-1:]]))
    with styled():
        canvas = Canvas(figsize=(2 * PANEL_INCHES, 2.9), layout="constrained")
        axes = canvas.subplots()
        _draw_seeds(searched, axes, [(point, point.number) for point in complete])
        numbers = [point.number for point in complete]
        axes.scatter(
            numbers, [scale * p.objectives[0] for p in complete], s=20, color=_POINTS,
            label="mean of a point",
        )  # fmt: skip
        axes.step(numbers, best, where="post", color=_WINNER, label="lowest mean so far")
        expected: tuple[float, ...] = ()
        if searched.search.strategy.sampler == "random" and complete:
            expected = expected_lowest([point.objectives[0] for point in complete])
            axes.plot(
                numbers, [scale * value for value in expected], color=_WINNER, linestyle=":",
                label="expected lowest of as many",
            )  # fmt: skip
        for arm in searched.baselines:
            summary = searched.summary(arm)
            if summary is not None:
                colour, dashes = looks[arm]
                axes.axhline(
                    scale * summary.mean, color=colour, linestyle=dashes, linewidth=1, label=arm
                )
        axes.set_xlabel("point, in the order of proposals")
        axes.set_ylabel(searched.shown.heading)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        arms = [arm for arm in searched.baselines if searched.summary(arm) is not None]
        scale_values(axes, searched.shown, _heights(searched, complete, arms))
        legend(canvas, axes)
        return finished(
            canvas,
            name="search_history",
            title="Optimisation history",
            caption=f"Last-epoch {searched.shown.label} of each complete point: every "
            f"seed small, mean over {_spell_seeds(searched)} large, the lowest mean so far as a "
            "line, the arms as horizontal lines. The lowest of many means is lower than its true "
            "mean. "
            + (
                "Dotted: the expected lowest mean of as many of these points, drawn at random. "
                if expected
                else ""
            )
            + f"Selection rule {searched.search.strategy.select}, "
            f"{len(searched.history.points)} points tried.",
            numbers=spell_csv(
                [
                    _numbers(searched, point)
                    | {"lowest_mean_so_far": value / scale}
                    | ({"expected_lowest": expected[place]} if expected else {})
                    for place, (point, value) in enumerate(zip(complete, best, strict=True))
                ]
            ),
        )


def _slices(searched: Searched, complete: Sequence[Point]) -> Figure:
    """Return one panel per parameter: its value against the means and seeds of all points."""
    parameters = searched.search.space.parameters
    scale = searched.shown.scale
    with styled():
        canvas = Canvas(
            figsize=(PANEL_INCHES * max(2, min(3, len(parameters))), 2.7), layout="constrained"
        )
        panels = canvas.subplots(1, len(parameters), squeeze=False, sharey=True)[0]
        for axes, parameter in zip(panels, parameters, strict=True):
            placed = [
                (point, _place(parameter, point.values[parameter.path]))
                for point in complete
                if parameter.path in point.values
            ]
            _draw_seeds(searched, axes, placed)
            axes.scatter(
                [x for _, x in placed], [scale * p.objectives[0] for p, _ in placed], s=20,
                color=[_WINNER if p == searched.winner else _POINTS for p, _ in placed],
            )  # fmt: skip
            _mark(axes.xaxis, parameter)
        panels[0].set_ylabel(searched.shown.heading)
        scale_values(panels[0], searched.shown, _heights(searched, complete))
        return finished(
            canvas,
            name="search_slices",
            title="Slices",
            caption=f"Last-epoch {searched.shown.label} by the value of each parameter, "
            "the other parameters as they were: every seed small, means over "
            f"{_spell_seeds(searched)} large, the selected point in red. Selection rule "
            f"{searched.search.strategy.select}, {len(searched.history.points)} points tried.",
            numbers=spell_csv([_numbers(searched, point) for point in complete]),
        )


def _importance(searched: Searched) -> Figure | None:
    importances = searched.history.importances
    if not importances:
        return None
    ordered = sorted(importances.items(), key=lambda entry: entry[1])
    with styled():
        canvas = Canvas(figsize=(2 * PANEL_INCHES, 0.9 + 0.35 * len(ordered)), layout="constrained")
        axes = canvas.subplots()
        axes.barh([path for path, _ in ordered], [part for _, part in ordered], color=_POINTS)
        axes.set_xlim(0, 1)
        axes.set_xlabel("share of importance")
        axes.grid(visible=False, axis="y")
        complete = sum(point.state == "complete" for point in searched.history.points)
        return finished(
            canvas,
            name="search_importance",
            title="Parameter importance",
            caption=f"PED-ANOVA of {searched.shown.label} over the means of {complete} "
            f"points of {_spell_seeds(searched)} each: how much each parameter tells the best "
            "tenth of the points from the rest. Parameters that only some points have are left "
            "out. With few points it is a hint and no measurement.",
            numbers=spell_csv(
                [{"parameter": path, "importance": part} for path, part in reversed(ordered)]
            ),
        )


def _front(searched: Searched, complete: Sequence[Point]) -> Figure | None:
    if len(searched.search.strategy.objectives) < 2:
        return None
    front = sorted(pareto_front(complete), key=lambda point: point.objectives)
    first, second = searched.search.strategy.objectives[:2]
    metrics = searched.study.problem.metric(first), searched.study.problem.metric(second)
    scales = metrics[0].scale, metrics[1].scale
    with styled():
        canvas = Canvas(figsize=(PANEL_INCHES * 1.5, 2.9), layout="constrained")
        axes = canvas.subplots()
        for points, colour in ((complete, _POINTS), (front, _WINNER)):
            axes.scatter(
                [scales[0] * p.objectives[0] for p in points],
                [scales[1] * p.objectives[1] for p in points],
                s=22, color=colour,
            )  # fmt: skip
        axes.set_xlabel(metrics[0].heading)
        axes.set_ylabel(metrics[1].heading)
        return finished(
            canvas,
            name="search_front",
            title="Pareto front",
            caption=f"Means of {len(complete)} complete points over {_spell_seeds(searched)}; red: "
            "no other point is better in one objective and no worse in the others.",
            numbers=spell_csv([_numbers(searched, p) | {"on_front": p in front} for p in complete]),
        )


def _draw_seeds(searched: Searched, axes: Axes, placed: Sequence[tuple[Point, float]]) -> None:
    values = searched.values[searched.objective]
    scale = searched.shown.scale
    dots = [(x, scale * value) for point, x in placed for value in values[point.arm].values()]
    axes.scatter(
        [x for x, _ in dots], [y for _, y in dots], s=5, color=_POINTS, alpha=0.45, linewidth=0
    )


def _heights(searched: Searched, points: Sequence[Point], arms: Sequence[str] = ()) -> list[float]:
    """Return the objective of every seed of some points and arms, as drawn."""
    values = searched.values[searched.objective]
    return [
        searched.shown.scale * value
        for arm in (*(point.arm for point in points), *arms)
        for value in values[arm].values()
    ]


def _numbers(searched: Searched, point: Point) -> dict[str, Any]:
    summary = searched.summary(point.arm)
    values: Mapping[int, float] = searched.values[searched.objective][point.arm]
    return (
        {"point": point.number, "state": point.state}
        | {p.path: point.values.get(p.path) for p in searched.search.space.parameters}
        | {name: getattr(summary, name, None) for name in ("n", "mean", "sd", "ci_low", "ci_high")}
        | {f"seed_{seed}": values.get(seed) for seed in searched.study.seeds}
        | {"selected": point == searched.winner}
    )


def _spell_cell(searched: Searched, point: Point) -> str:
    summary = searched.summary(point.arm)
    assert summary is not None
    scale = searched.shown.scale
    spread = "" if summary.sd is None else f" ±{scale * summary.sd:.1f}"
    return f"{scale * summary.mean:.1f}{spread}"


def _spell_seeds(searched: Searched) -> str:
    return f"{len(searched.study.seeds)} seeds"


def _place(parameter: Parameter, value: Any) -> float:
    if isinstance(parameter.distribution, Categorical):
        return parameter.distribution.choices.index(value)
    return float(value) if value is not None else math.nan
