import re
from dataclasses import replace

from matplotlib import pyplot

from reports.figures.canvas import Figure, arm_styles
from reports.figures.search_figures import draw_search
from reports.tables.searched import gather
from sweeps.study.study import Study
from tests.reports.synthetic import rows_of
from tests.reports.synthetic_search import (
    GROWN,
    HISTORY,
    PARETO,
    result_of,
    search_study,
)


def draw(study: Study, history: object = HISTORY) -> dict[str, Figure]:
    results = [result_of(run) for run in study.runs()]
    searched = gather(study, results, history)  # type: ignore[arg-type]
    figures = draw_search(searched, arm_styles(study.arms))
    return {figure.name: figure for figure in figures}


def test_figures_of_a_search_have_numbers_and_state_the_points_tried() -> None:
    figures = draw(GROWN)
    assert list(figures) == [
        "search_map", "search_history", "search_slices", "search_importance",
    ]  # fmt: skip
    for figure in figures.values():
        assert "points" in figure.caption
    rows = rows_of(figures["search_map"].numbers)
    assert [(row["point"], row["selected"], row["n"]) for row in rows] == [
        ("0", "false", "3"), ("1", "true", "3"), ("3", "false", "3"),
    ]  # fmt: skip
    assert "4 points tried" in figures["search_map"].caption
    said = re.findall(rb"<!-- (.+?) -->", figures["search_history"].svg)
    assert {b"erm", b"uniform", b"validation error, %"} <= set(said)
    assert pyplot.get_fignums() == []
    assert draw(GROWN)["search_history"].svg == figures["search_history"].svg


def test_a_search_with_several_objectives_has_the_pareto_front_of_the_two_drawn() -> None:
    more = {0: (0.3, 0.0), 1: (0.2, 0.1), 3: (0.1, 0.2)}
    points = [
        replace(one, objectives=(*one.objectives[:1], *more.get(one.number, ()))) for one in PARETO
    ]
    study = search_study("val/error", "val/nll", "train/loss").grown(points)
    rows = rows_of(draw(study, replace(HISTORY, points=points))["search_front"].numbers)
    assert [(row["val/error"], row["val/nll"], row["on_front"]) for row in rows] == [
        ("0.21", "0.3", "false"), ("0.18", "0.2", "true"), ("0.19", "0.1", "true"),
    ]  # fmt: skip
