"""Figures of a search: map, history, slices, importance and Pareto front, drawn by Optuna."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from reports.figures.canvas import (
    PANEL_INCHES,
    Figure,
    Styles,
    finished,
    scale_values,
    styled,
)
from reports.numbers.spelling import spell_csv, upper_first
from reports.numbers.summary import numbers_of
from reports.tables.searched import Searched
from sweeps.searching.selection import pareto_front
from sweeps.study.search import Point


def draw_search(searched: Searched, styles: Styles) -> tuple[Figure, ...]:
    """Return the figures of a search; empty if no point is complete."""
    complete = [
        point
        for point in searched.history.points
        if point.state == "complete" and searched.summary(point.arm) is not None
    ]
    if not complete:
        return ()
    from optuna.visualization import matplotlib as drawn

    from sweeps.searching.search_history import importances_of, study_of_means

    search, shown = searched.search, searched.shown
    objectives = [searched.study.problem.metric(name) for name in search.strategy.objectives]
    means = study_of_means(search, complete, (shown.scale,))
    varying = [
        path
        for path in (parameter.path for parameter in search.space.parameters)
        if len({repr(point.values[path]) for point in complete if path in point.values}) > 1
    ]
    weights = importances_of(search, complete)
    across, up = [*sorted(varying, key=lambda path: -weights.get(path, 0)), "", ""][:2]
    together = [point for point in complete if {across, up} <= point.values.keys()]
    over = f"over {len(searched.study.seeds)} seeds"
    rule = (
        f"Selection rule: {search.strategy.select}, among {len(searched.history.points)} points "
        "tried."
    )
    dots = f"{upper_first(shown.label)} after the last epoch of each complete point: mean {over}"
    records = [point_numbers(searched, point) for point in complete]

    def history() -> Axes:
        axes: Axes = drawn.plot_optimization_history(means, target_name=shown.heading)
        for arm in searched.baselines:
            if (summary := searched.summary(arm)) is not None:
                colour, dashes = styles[arm]
                level = shown.scale * summary.mean
                title = searched.study.title_of(arm)
                axes.axhline(level, color=colour, linestyle=dashes, linewidth=1, label=title)
        axes.set_xlabel("complete point, in the order of proposal")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes

    figures = []
    if across and up and len({point.objectives[0] for point in together}) > 1:
        figures.append(
            _finished(
                lambda: drawn.plot_contour(means, params=[across, up], target_name=shown.heading),
                name="search_map",
                title=f"Map of {across} and {up}",
                caption=f"{dots} (dots), and values interpolated between them. {rule}",
                records=records,
            )
        )
    figures += [
        _finished(
            history,
            searched,
            name="search_history",
            title="Search history",
            caption=f"{dots} (dots), and the lowest so far (line). Horizontal lines: means of the "
            f"arms. The lowest of many means is biased downwards. {rule}",
            records=records,
        ),
        _finished(
            lambda: drawn.plot_slice(means, target_name=shown.heading),
            searched,
            width=max(2, min(3, len(search.space.parameters))),
            name="search_slices",
            title="Search results by parameter",
            caption=f"{dots}, by the value of each parameter; the other parameters vary, too. "
            f"Darker dots: later points. {rule}",
            records=records,
        ),
    ]
    if weights:
        figures.append(
            _finished(
                lambda: drawn.plot_param_importances(
                    means, params=list(weights), target_name=shown.label
                ),
                name="search_importance",
                title="Parameter importance",
                caption=f"PED-ANOVA importance of each parameter for the {shown.label}: how well "
                "the parameter separates the best tenth of the points from the others. It is "
                f"computed from the means of {len(complete)} points {over}. Parameters that only "
                "some points have are left out. With few points the importance is only a rough "
                "estimate.",
                records=[{"parameter": path, "importance": part} for path, part in weights.items()],
            )
        )
    if len(objectives) > 1:
        drawn_pairs = [replace(point, objectives=point.objectives[:2]) for point in complete]
        front = pareto_front(drawn_pairs)
        pairs = study_of_means(search, complete, [metric.scale for metric in objectives[:2]])
        figures.append(
            _finished(
                lambda: drawn.plot_pareto_front(
                    pairs, target_names=[metric.heading for metric in objectives[:2]]
                ),
                name="search_front",
                title="Pareto front",
                caption=f"Means of {len(complete)} complete points {over}. Best trials: the "
                "Pareto front of these two objectives, that is points for which no other point is "
                "better in one of them and at least as good in the other.",
                records=[
                    record
                    | dict(zip(search.strategy.objectives, point.objectives, strict=False))
                    | {"on_front": point in front}
                    for record, point in zip(records, drawn_pairs, strict=True)
                ],
            )
        )
    return tuple(figures)


def _finished(  # noqa: PLR0913  what a figure is made of
    draw: Callable[[], Any],
    searched: Searched | None = None,
    *,
    width: int = 2,
    name: str,
    title: str,
    caption: str,
    records: Sequence[Mapping[str, Any]],
) -> Figure:
    """Return a picture of Optuna as a report's figure; the axis of means fits those of `searched`.

    Optuna draws with pyplot, whose figure is closed again.
    """
    from matplotlib import pyplot

    with styled(), warnings.catch_warnings():
        mpl.rcParams["figure.constrained_layout.use"] = True
        warnings.simplefilter("ignore")  # pictures of Optuna are experimental; contours may be flat
        panels = draw()
        first: Axes = panels if isinstance(panels, Axes) else panels.flat[0]
        canvas = first.figure
        assert isinstance(canvas, Canvas), "Optuna draws no figure within a figure"
        if searched is not None:
            points = (p for p in searched.history.points if p.state == "complete")
            scale = searched.shown.scale
            scale_values(first, searched.shown, [scale * p.objectives[0] for p in points])
        canvas.suptitle("")
        for axes in canvas.axes:
            axes.set_title("", loc="left")
            axes.set_title("")
        canvas.set_size_inches(width * PANEL_INCHES, 3.2)
        try:
            return finished(
                canvas, name=name, title=title, caption=caption, numbers=spell_csv(records)
            )
        finally:
            pyplot.close(canvas)


def point_numbers(searched: Searched, point: Point) -> dict[str, Any]:
    """Return a search point as a CSV row, by column: its parameters and results."""
    summary = searched.summary(point.arm)
    values: Mapping[int, float] = searched.values[searched.objective][point.arm]
    # Frozen: columns of `figures/search_*.csv`, which scripts read by name;
    # tests/reports/figures/test_search_figures.py fails.
    return (
        {"point": point.number, "state": point.state}
        | {p.path: point.values.get(p.path) for p in searched.search.space.parameters}
        | {**numbers_of(summary), "sd": getattr(summary, "sd", None)}
        | {f"seed_{seed}": values.get(seed) for seed in searched.study.seeds}
        | {"selected": point == searched.winner}
    )
