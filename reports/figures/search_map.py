"""Search map: the points of a search in the plane of two of its parameters."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from mixup_core.config.building import with_values
from mixup_core.keys import stage_keys
from reports.figures.canvas import PANEL_INCHES, Figure, finished, styled
from reports.figures.colours import Styles
from reports.figures.parameter_axis import (
    MARGIN,
    Edge,
    beyond,
    bound,
    is_log,
    is_number,
    mark,
    place,
)
from reports.numbers.spelling import spell_csv
from reports.tables.searched import Searched
from sweeps.study.search import Point, Search
from sweeps.study.space import Categorical, Parameter, Space


def draw_map(searched: Searched, complete: Sequence[Point], styles: Styles) -> Figure | None:
    """Return a figure of the points of a search in the plane of two of its parameters.

    Colour and text show the mean of the metric that selects the winner. The result is None if fewer
    than two parameters have numbers as values, or no complete point has values of both parameters.
    """
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
        mark(axes.xaxis, across)
        mark(axes.yaxis, up)
        for edge, arm, mean in bands:
            outer, inner = beyond(across, edge, MARGIN), beyond(across, edge, MARGIN / 2)
            axes.axvspan(outer, inner, color=colours(norm(mean)), linewidth=0)
            axes.annotate(
                arm, (inner, 0.5), xycoords=axes.get_xaxis_transform(), rotation=90, va="center",
                ha="left" if edge == "low" else "right", fontsize=8, color=styles[arm][0],
            )  # fmt: skip
        beside = []
        for mean, point in sorted(zip(means, shown, strict=True), key=itemgetter(0)):
            x, y = (place(axis, point.values[axis.path]) for axis in plane)
            selected = point == searched.winner
            axes.scatter(
                [x], [y], s=90, color=[colours(norm(mean))], zorder=3,
                edgecolor=WINNER if selected else "white", linewidth=2.2 if selected else 0.6,
            )  # fmt: skip
            beside.append(
                axes.annotate(
                    _spell_cell(searched, point), (x, y), xytext=(7, 3),
                    textcoords="offset points", fontsize=6.5,
                )
            )  # fmt: skip
        pruned = [
            [place(axis, point.values[axis.path]) for axis in plane]
            for point in searched.history.points
            if point.state == "pruned" and {across.path, up.path} <= point.values.keys()
        ]
        axes.scatter([x for x, _ in pruned], [y for _, y in pruned], marker="x", s=25, color=POINTS)
        bar = canvas.colorbar(mpl.cm.ScalarMappable(norm, colours), ax=axes)
        bar.set_label(searched.shown.heading)
        _keep_apart(canvas, beside)
        told = "".join(
            f" Band at {across.path} = {bound(across, edge):g}: every point there computes the "
            f"same as {arm}."
            for edge, arm, _ in bands
        )
        crosses = " Crosses: pruned points." if pruned else ""
        unset = "".join(
            f" null: {axis.path} is not set."
            for axis in plane
            if isinstance(axis.distribution, Categorical) and None in axis.distribution.choices
        )
        return finished(
            canvas,
            name="search_map",
            title=f"Map of {across.path} and {up.path}",
            caption=f"Mean {searched.shown.label} after the last epoch of each complete point, "
            f"over {spell_seeds(searched)}. Colour: the mean. Text: mean ± standard deviation over "
            "seeds, where there is room; points with lower means have priority."
            f"{told}{crosses}{unset} Framed: the selected point (selection rule: "
            f"{searched.search.strategy.select}, among {len(searched.history.points)} points "
            "tried).",
            numbers=spell_csv([numbers_of(searched, point) for point in searched.history.points]),
        )


def _plane(space: Space) -> tuple[Parameter, Parameter] | None:
    """Return the parameters of the horizontal and the vertical axis."""
    numbers = [p for p in space.parameters if is_number(p)]
    if len(numbers) < 2:
        return None
    up = next((parameter for parameter in numbers if is_log(parameter)), numbers[1])
    across = next(parameter for parameter in numbers if parameter != up)
    return across, up


def _edges(searched: Searched, across: Parameter) -> dict[Edge, str]:
    """Return the ends of an axis at which every point has the same results as an arm, and that arm.

    For example, every point with switch epoch 0 is ERM. Two points are tested at each end: one with
    all other parameters at their lowest values, one with all at their highest.
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
    """Return the final stage key of one point; None if its values contradict each other."""

    def draw(parameter: Parameter) -> Any:
        return fixed.get(parameter.path, parameter.distribution.extremes[which])

    with suppress(ValueError, KeyError):
        return stage_keys(search.config_of(search.space.draw(draw)))[-1]
    return None


def _keep_apart(canvas: Canvas, texts: Sequence[Text]) -> None:
    """Hide each text that overlaps one earlier in the sequence."""
    canvas.draw_without_rendering()
    boxes: list[Bbox] = []
    for text in texts:
        box = text.get_window_extent()
        text.set_visible(not any(box.overlaps(other) for other in boxes))
        if text.get_visible():
            boxes.append(box)


def _spell_cell(searched: Searched, point: Point) -> str:
    summary = searched.summary(point.arm)
    assert summary is not None
    scale = searched.shown.scale
    spread = "" if summary.sd is None else f" ±{scale * summary.sd:.1f}"
    return f"{scale * summary.mean:.1f}{spread}"


POINTS = "#555555"

WINNER = "#D55E00"


def numbers_of(searched: Searched, point: Point) -> dict[str, Any]:
    """Return a search point as a CSV row, by column: its parameters and results.

    The metric that selects the winner has its mean, sd and interval, and its value at each seed.
    """
    summary = searched.summary(point.arm)
    values: Mapping[int, float] = searched.values[searched.objective][point.arm]
    return (
        {"point": point.number, "state": point.state}
        | {p.path: point.values.get(p.path) for p in searched.search.space.parameters}
        | {name: getattr(summary, name, None) for name in ("n", "mean", "sd", "ci_low", "ci_high")}
        | {f"seed_{seed}": values.get(seed) for seed in searched.study.seeds}
        | {"selected": point == searched.winner}
    )


def spell_seeds(searched: Searched) -> str:
    """Return the number of seeds of a complete search point, as text: `5 seeds`."""
    return f"{len(searched.study.seeds)} seeds"
