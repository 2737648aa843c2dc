"""Figures of a search: map of alpha and switch epoch, history, slices and importance."""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from reports.figures import PANEL_INCHES, STYLE, Figure, arm_looks, finished, legend
from reports.metrics import show
from reports.searched import Searched
from reports.spelling import spell_csv
from sweeps.search import Point
from sweeps.space import Categorical, Parameter, Real

_POINTS = "#555555"
_WINNER = "#D55E00"
_MAP_AXES = ("mix.law.alpha", "mix.switch_epoch")


def draw_search(searched: Searched) -> tuple[Figure, ...]:
    """Return the figures of a search, leaving out those for which no point is complete yet.

    A point whose runs the store has lost is not drawn.
    """
    points = [point for point in searched.history.points if point.state == "complete"]
    complete = [point for point in points if searched.summary(point.arm) is not None]
    if not complete:
        return ()
    figures = (
        _map(searched, complete),
        _history(searched, complete),
        _slices(searched, complete),
        _importance(searched),
        _front(searched, complete),
    )
    return tuple(figure for figure in figures if figure is not None)


def _map(searched: Searched, complete: Sequence[Point]) -> Figure | None:
    """Return the map: mean by colour, sd over seeds written beside each point."""
    shown = [point for point in complete if all(path in point.values for path in _MAP_AXES)]
    if not shown:
        return None
    scale = _scale(searched)
    erm = searched.summary("erm") if "erm" in searched.study.arms else None
    means = [scale * point.objectives[0] for point in shown]
    coloured = [*means, scale * erm.mean] if erm else means
    alphas = [point.values["mix.law.alpha"] for point in shown]
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(2 * PANEL_INCHES, 3.6), layout="constrained")
        axes = canvas.subplots()
        colours = mpl.colormaps["viridis"]
        norm = mpl.colors.Normalize(min(coloured), max(coloured))
        axes.set_yscale("log")
        if erm is not None:
            # Switch 0 is plain ERM for every alpha: one band instead of points.
            axes.axvspan(-0.6, 0.2, color=colours(norm(scale * erm.mean)), linewidth=0)
        beside = []
        for mean, point in sorted(zip(means, shown, strict=True), key=itemgetter(0)):
            x, y = point.values["mix.switch_epoch"], point.values["mix.law.alpha"]
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
        pruned = [p for p in searched.history.points if p.state == "pruned"]
        pruned = [p for p in pruned if all(path in p.values for path in _MAP_AXES)]
        axes.scatter(
            [p.values["mix.switch_epoch"] for p in pruned],
            [p.values["mix.law.alpha"] for p in pruned],
            marker="x", s=25, color=_POINTS,
        )  # fmt: skip
        axes.set_xlabel("switch epoch (first epoch without mixing)")
        axes.set_ylabel("alpha of Beta(alpha, alpha)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(min(alphas) / 1.4, max(alphas) * 1.4)
        bar = canvas.colorbar(mpl.cm.ScalarMappable(norm, colours), ax=axes)
        bar.set_label(show(searched.objective).heading)
        _keep_apart(canvas, beside)
        band = " Band at 0: ERM, which switch 0 is at every alpha." if erm else ""
        crosses = " Crosses: pruned." if pruned else ""
        return finished(
            canvas,
            name="search_map",
            title="Alpha and switch epoch",
            caption=f"Each point: mean of last-epoch {show(searched.objective).label} over "
            f"{_spell_seeds(searched)} by colour, mean and sd over seeds beside it where there is "
            f"room, the lowest first; alpha on a logarithmic axis.{band}{crosses} Framed: selected "
            f"by {searched.search.select} among {len(searched.history.points)} points tried.",
            numbers=spell_csv([_numbers(searched, point) for point in searched.history.points]),
        )


def _keep_apart(canvas: Canvas, texts: Sequence[Text]) -> None:
    """Hide each text that would lie over an earlier one."""
    canvas.draw_without_rendering()
    boxes: list[Bbox] = []
    for text in texts:
        box = text.get_window_extent()
        text.set_visible(not any(box.overlaps(other) for other in boxes))
        if text.get_visible():
            boxes.append(box)


def _history(searched: Searched, complete: Sequence[Point]) -> Figure:
    """Return every point in the order of asking, and the best mean so far."""
    scale = _scale(searched)
    looks = arm_looks(searched.baselines)
    best: list[float] = []
    for point in complete:
        best.append(min([scale * point.objectives[0], *best[-1:]]))
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(2 * PANEL_INCHES, 2.9), layout="constrained")
        axes = canvas.subplots()
        _draw_seeds(searched, axes, [(point, point.number) for point in complete])
        numbers = [point.number for point in complete]
        axes.scatter(
            numbers, [scale * p.objectives[0] for p in complete], s=20, color=_POINTS,
            label="mean of a point",
        )  # fmt: skip
        axes.step(numbers, best, where="post", color=_WINNER, label="lowest mean so far")
        for arm in searched.baselines:
            summary = searched.summary(arm)
            if summary is not None:
                colour, dashes = looks[arm]
                axes.axhline(
                    scale * summary.mean, color=colour, linestyle=dashes, linewidth=1, label=arm
                )
        axes.set_xlabel("point, in the order of proposals")
        axes.set_ylabel(show(searched.objective).heading)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend(canvas, axes)
        return finished(
            canvas,
            name="search_history",
            title="Optimisation history",
            caption=f"Last-epoch {show(searched.objective).label} of each complete point: every "
            f"seed small, mean over {_spell_seeds(searched)} large, the lowest mean so far as a "
            "line, the arms as horizontal lines. The lowest of many means is lower than its true "
            f"mean. Selection rule {searched.search.select}, {len(searched.history.points)} points "
            "tried.",
            numbers=spell_csv(
                [
                    _numbers(searched, point) | {"lowest_mean_so_far": value / scale}
                    for point, value in zip(complete, best, strict=True)
                ]
            ),
        )


def _slices(searched: Searched, complete: Sequence[Point]) -> Figure:
    """Return one panel per parameter: its value against the means and seeds of all points."""
    parameters = searched.search.space.parameters
    scale = _scale(searched)
    with mpl.rc_context(STYLE):
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
            axes.set_xlabel(parameter.path)
            if isinstance(parameter.distribution, Real) and parameter.distribution.is_log:
                axes.set_xscale("log")
            if isinstance(parameter.distribution, Categorical):
                choices = parameter.distribution.choices
                axes.set_xticks(range(len(choices)), [str(choice) for choice in choices])
        panels[0].set_ylabel(show(searched.objective).heading)
        return finished(
            canvas,
            name="search_slices",
            title="Slices",
            caption=f"Last-epoch {show(searched.objective).label} by the value of each parameter, "
            "the other parameters as they were: every seed small, means over "
            f"{_spell_seeds(searched)} large, the selected point in red. Selection rule "
            f"{searched.search.select}, {len(searched.history.points)} points tried.",
            numbers=spell_csv([_numbers(searched, point) for point in complete]),
        )


def _importance(searched: Searched) -> Figure | None:
    importances = searched.history.importances
    if not importances:
        return None
    ordered = sorted(importances.items(), key=lambda entry: entry[1])
    with mpl.rc_context(STYLE):
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
            caption=f"PED-ANOVA of {show(searched.objective).label} over the means of {complete} "
            f"points of {_spell_seeds(searched)} each: how much each parameter tells the best "
            "tenth of the points from the rest. Parameters that only some points have are left "
            "out. With few points it is a hint and no measurement.",
            numbers=spell_csv(
                [{"parameter": path, "importance": part} for path, part in reversed(ordered)]
            ),
        )


def _front(searched: Searched, complete: Sequence[Point]) -> Figure | None:
    if len(searched.search.objectives) < 2:
        return None
    from sweeps.searching.selection import pareto_front

    front = sorted(pareto_front(complete), key=lambda point: point.objectives)
    first, second = searched.search.objectives[:2]
    scales = show(first).scale, show(second).scale
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(PANEL_INCHES * 1.5, 2.9), layout="constrained")
        axes = canvas.subplots()
        for points, colour in ((complete, _POINTS), (front, _WINNER)):
            axes.scatter(
                [scales[0] * p.objectives[0] for p in points],
                [scales[1] * p.objectives[1] for p in points],
                s=22, color=colour,
            )  # fmt: skip
        axes.set_xlabel(show(first).heading)
        axes.set_ylabel(show(second).heading)
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
    scale = _scale(searched)
    dots = [(x, scale * value) for point, x in placed for value in values[point.arm].values()]
    axes.scatter(
        [x for x, _ in dots], [y for _, y in dots], s=5, color=_POINTS, alpha=0.45, linewidth=0
    )


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
    scale = _scale(searched)
    spread = "" if summary.sd is None else f" ±{scale * summary.sd:.1f}"
    return f"{scale * summary.mean:.1f}{spread}"


def _spell_seeds(searched: Searched) -> str:
    return f"{len(searched.study.seeds)} seeds"


def _place(parameter: Parameter, value: Any) -> float:
    if isinstance(parameter.distribution, Categorical):
        return parameter.distribution.choices.index(value)
    return float(value) if value is not None else math.nan


def _scale(searched: Searched) -> float:
    return show(searched.objective).scale
