"""Figures of a search: map, history, slices by parameter, importance, and Pareto front."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from reports.figures.canvas import PANEL_INCHES, Figure, finished, legend, scale_values, styled
from reports.figures.colours import Styles
from reports.figures.parameter_axis import mark, place
from reports.figures.search_map import POINTS, WINNER, draw_map, numbers_of, spell_seeds
from reports.numbers.spelling import spell_csv, upper_first
from reports.numbers.summary import expected_lowest
from reports.tables.searched import Searched
from sweeps.searching.selection import pareto_front
from sweeps.study.search import Point


def draw_search(searched: Searched, styles: Styles) -> tuple[Figure, ...]:
    """Return the figures of a search; empty if no point is complete.

    Points whose runs are missing from the store are left out.
    """
    points = [point for point in searched.history.points if point.state == "complete"]
    complete = [point for point in points if searched.summary(point.arm) is not None]
    if not complete:
        return ()
    figures = (
        draw_map(searched, complete, styles),
        _history(searched, complete, styles),
        _slices(searched, complete),
        _importance(searched),
        _front(searched, complete),
    )
    return tuple(figure for figure in figures if figure is not None)


def _history(searched: Searched, complete: Sequence[Point], styles: Styles) -> Figure:
    """Return the figure of the means of all points in the order of proposals."""
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
            numbers, [scale * p.objectives[0] for p in complete], s=20, color=POINTS,
            label="mean of a point",
        )  # fmt: skip
        axes.step(numbers, best, where="post", color=WINNER, label="lowest mean so far")
        expected: tuple[float, ...] = ()
        if searched.search.strategy.sampler == "random" and complete:
            expected = expected_lowest([point.objectives[0] for point in complete])
            axes.plot(
                numbers, [scale * value for value in expected], color=WINNER, linestyle=":",
                label="expected lowest mean",
            )  # fmt: skip
        for arm in searched.baselines:
            summary = searched.summary(arm)
            if summary is not None:
                colour, dashes = styles[arm]
                axes.axhline(
                    scale * summary.mean, color=colour, linestyle=dashes, linewidth=1, label=arm
                )
        axes.set_xlabel("point, in the order of proposal")
        axes.set_ylabel(searched.shown.heading)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        arms = [arm for arm in searched.baselines if searched.summary(arm) is not None]
        scale_values(axes, searched.shown, _heights(searched, complete, arms))
        legend(canvas, axes)
        return finished(
            canvas,
            name="search_history",
            title="Search history",
            caption=f"{upper_first(searched.shown.label)} after the last epoch of each complete "
            f"point. Small dots: single seeds. Large dots: means over {spell_seeds(searched)}. "
            "Step line: the lowest mean so far. Horizontal lines: means of the arms. The lowest of "
            "many means is biased downwards. "
            + (
                "Dotted: the expected lowest mean of as many points, drawn at random from these. "
                if expected
                else ""
            )
            + _spell_selection(searched),
            numbers=spell_csv(
                [
                    numbers_of(searched, point)
                    | {"lowest_mean_so_far": value / scale}
                    | ({"expected_lowest": expected[place]} if expected else {})
                    for place, (point, value) in enumerate(zip(complete, best, strict=True))
                ]
            ),
        )


def _slices(searched: Searched, complete: Sequence[Point]) -> Figure:
    """Return the figure of the metric that selects the winner against each parameter, in panels."""
    parameters = searched.search.space.parameters
    scale = searched.shown.scale
    with styled():
        canvas = Canvas(
            figsize=(PANEL_INCHES * max(2, min(3, len(parameters))), 2.7), layout="constrained"
        )
        panels = canvas.subplots(1, len(parameters), squeeze=False, sharey=True)[0]
        for axes, parameter in zip(panels, parameters, strict=True):
            placed = [
                (point, place(parameter, point.values[parameter.path]))
                for point in complete
                if parameter.path in point.values
            ]
            _draw_seeds(searched, axes, placed)
            axes.scatter(
                [x for _, x in placed], [scale * p.objectives[0] for p, _ in placed], s=20,
                color=[WINNER if p == searched.winner else POINTS for p, _ in placed],
            )  # fmt: skip
            mark(axes.xaxis, parameter)
        panels[0].set_ylabel(searched.shown.heading)
        scale_values(panels[0], searched.shown, _heights(searched, complete))
        return finished(
            canvas,
            name="search_slices",
            title="Search results by parameter",
            caption=f"{upper_first(searched.shown.label)} after the last epoch by the value of "
            "each parameter; the other parameters vary, too. Small dots: single seeds. Large dots: "
            f"means over {spell_seeds(searched)}. Red: the selected point. "
            f"{_spell_selection(searched)}",
            numbers=spell_csv([numbers_of(searched, point) for point in complete]),
        )


def _importance(searched: Searched) -> Figure | None:
    importances = searched.history.importances
    if not importances:
        return None
    ordered = sorted(importances.items(), key=lambda entry: entry[1])
    with styled():
        canvas = Canvas(figsize=(2 * PANEL_INCHES, 0.9 + 0.35 * len(ordered)), layout="constrained")
        axes = canvas.subplots()
        axes.barh([path for path, _ in ordered], [part for _, part in ordered], color=POINTS)
        axes.set_xlim(0, 1)
        axes.set_xlabel("relative importance")
        axes.grid(visible=False, axis="y")
        complete = sum(point.state == "complete" for point in searched.history.points)
        return finished(
            canvas,
            name="search_importance",
            title="Parameter importance",
            caption=f"PED-ANOVA importance of each parameter for the {searched.shown.label}: how "
            "well the parameter separates the best tenth of the points from the others. It is "
            f"computed from the means of {complete} points over {spell_seeds(searched)}. "
            "Parameters that only some points have are left out. With few points the importance is "
            "only a rough estimate.",
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
        for points, colour in ((complete, POINTS), (front, WINNER)):
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
            caption=f"Means of {len(complete)} complete points over {spell_seeds(searched)}. Red: "
            "Pareto front, that is points for which no other point is better in one objective and "
            "at least as good in the others.",
            numbers=spell_csv(
                [numbers_of(searched, p) | {"on_front": p in front} for p in complete]
            ),
        )


def _spell_selection(searched: Searched) -> str:
    """Return a sentence on the selection rule of a search and its number of points."""
    rule, tried = searched.search.strategy.select, len(searched.history.points)
    return f"Selection rule: {rule}, among {tried} points tried."


def _draw_seeds(searched: Searched, axes: Axes, placed: Sequence[tuple[Point, float]]) -> None:
    values = searched.values[searched.objective]
    scale = searched.shown.scale
    dots = [(x, scale * value) for point, x in placed for value in values[point.arm].values()]
    axes.scatter(
        [x for x, _ in dots], [y for _, y in dots], s=5, color=POINTS, alpha=0.45, linewidth=0
    )


def _heights(searched: Searched, points: Sequence[Point], arms: Sequence[str] = ()) -> list[float]:
    """Return the selecting metric at every seed of the given points and arms, in the drawn unit."""
    values = searched.values[searched.objective]
    return [
        searched.shown.scale * value
        for arm in (*(point.arm for point in points), *arms)
        for value in values[arm].values()
    ]
