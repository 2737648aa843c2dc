import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from mixup_core.laws import Midpoint
from reports.figures.canvas import Figure
from reports.figures.colours import arm_styles
from reports.figures.search_figures import draw_search
from reports.tables.searched import gather
from sweeps.study.space import Categorical, Parameter, Real, Space
from sweeps.study.study import Study
from tests.reports.synthetic_search import HISTORY, result_of, search_study


def draw(study: Study, history: object = HISTORY) -> dict[str, Figure]:
    results = [result_of(run) for run in study.runs()]
    searched = gather(study, results, history)  # type: ignore[arg-type]
    figures = draw_search(searched, arm_styles(study.arms))
    return {figure.name: figure for figure in figures}


def test_figures_of_a_search_have_numbers_and_state_the_points_tried(grown: Study) -> None:
    figures = draw(grown)
    assert list(figures) == [
        "search_map", "search_history", "search_slices", "search_importance",
    ]  # fmt: skip
    for figure in figures.values():
        assert ElementTree.fromstring(figure.svg).tag.endswith("svg")
    rows = list(csv.DictReader(io.StringIO(figures["search_map"].numbers)))
    assert [row["selected"] for row in rows] == ["false", "true", "false", "false"]
    assert [row["n"] for row in rows] == ["3", "3", "2", "3"]
    assert "4 points tried" in figures["search_map"].caption


def test_the_band_of_the_search_map_shows_the_arm_equal_to_its_edge() -> None:
    study = search_study()
    renamed = {"plain": study.arms["erm"], "erm": study.arms["uniform"]}
    grown = replace(study, arms=renamed, baseline="plain").grown(HISTORY.points)
    caption = draw(grown)["search_map"].caption
    assert "Band at mix.switch_epoch = 0: every point there computes the same as plain." in caption
    assert caption.count("Band") == 1


def test_an_arm_named_erm_that_equals_no_edge_has_no_band() -> None:
    study = search_study()
    mixing = replace(study.arms["erm"], mix=replace(study.arms["erm"].mix, law=Midpoint()))
    grown = replace(study, arms={"erm": mixing, "uniform": study.arms["uniform"]}).grown(
        HISTORY.points
    )
    assert "Band" not in draw(grown)["search_map"].caption


def test_the_search_map_needs_two_varying_numbers(grown: Study) -> None:
    search = grown.search
    assert search is not None
    rate = Parameter(path="optimizer.lr", distribution=Real(low=1e-4, high=1e-2, is_log=True))
    switch = search.space.parameters[1]
    points = tuple(
        replace(p, values={"optimizer.lr": 0.001 * (1 + p.number), "mix.switch_epoch": p.number})
        for p in HISTORY.points
    )
    history = replace(HISTORY, points=points)
    two = replace(grown, search=replace(search, space=Space(parameters=(switch, rate))))
    assert draw(two, history)["search_map"].title == "Map of mix.switch_epoch and optimizer.lr"
    one = replace(grown, search=replace(search, space=Space(parameters=(rate,))))
    assert "search_map" not in draw(one, history)


def test_a_categorical_switch_epoch_with_null_can_be_an_axis_of_the_search_map(
    grown: Study,
) -> None:
    search = grown.search
    assert search is not None
    switches = (None, 4, 8)
    switch = Parameter(path="mix.switch_epoch", distribution=Categorical(choices=switches))
    space = Space(parameters=(search.space.parameters[0], switch))
    points = tuple(
        replace(p, values={**p.values, "mix.switch_epoch": switches[p.number % 3]})
        for p in HISTORY.points
    )
    study = replace(grown, search=replace(search, space=space))
    figure = draw(study, replace(HISTORY, points=points))["search_map"]
    assert figure.title == "Map of mix.switch_epoch and mix.law.alpha"
    assert "null: mix.switch_epoch is not set." in figure.caption
    said = re.findall(rb"<!-- (.+?) -->", figure.svg)
    assert {b"null", b"4", b"8"} <= set(said)
    rows = list(csv.DictReader(io.StringIO(figure.numbers)))
    assert [row["mix.switch_epoch"] for row in rows] == ["", "4", "8", ""]


def test_a_search_with_several_objectives_has_a_pareto_front_figure() -> None:
    points = tuple(
        replace(p, objectives=(*p.objectives, 1 - p.objectives[0])) if p.objectives else p
        for p in HISTORY.points
    )
    study = search_study("val/error", "val/nll").grown(points)
    assert "search_front" in draw(study, replace(HISTORY, points=points))


def test_a_search_without_stored_runs_has_no_figure(grown: Study) -> None:
    searched = gather(grown, [], HISTORY)
    assert draw_search(searched, arm_styles(grown.arms)) == ()


def test_only_a_random_search_shows_the_expected_lowest_value(grown: Study) -> None:
    assert grown.search is not None
    history = draw(grown)["search_history"]
    assert "expected_lowest" not in history.numbers
    assert "Dotted" not in history.caption
    random = replace(grown.search.strategy, sampler="random")
    at_random = draw(replace(grown, search=replace(grown.search, strategy=random)))
    rows = list(csv.DictReader(io.StringIO(at_random["search_history"].numbers)))
    expected = [float(row["expected_lowest"]) for row in rows]
    assert expected[0] == pytest.approx((0.21 + 0.18 + 0.19) / 3)
    assert expected[1] == pytest.approx((0.18 + 0.18 + 0.19) / 3)
    assert expected[2] == pytest.approx(0.18)


def test_ticks_of_slices_are_plain_numbers_and_the_choices_by_name() -> None:
    parameters = (
        Parameter(path="mix.law.alpha", distribution=Real(low=0.5, high=4.0, is_log=True)),
        Parameter(path="optimizer.lr", distribution=Real(low=1e-4, high=1e-1, is_log=True)),
        Parameter(path="batch_size", distribution=Categorical(choices=(50, 100, 200, 400, 500))),
    )
    study = search_study()
    assert study.search is not None
    study = replace(study, search=replace(study.search, space=Space(parameters=parameters)))
    rates, sizes = (1e-4, 1e-3, 1e-2, 1e-1), (50, 100, 200, 500)
    points = tuple(
        replace(p, values={"mix.law.alpha": 1.0 + p.number, "optimizer.lr": lr, "batch_size": size})
        for p, lr, size in zip(HISTORY.points, rates, sizes, strict=True)
    )
    svg = draw(study.grown(points), replace(HISTORY, points=points))["search_slices"].svg
    # Text is drawn as paths, before which stands what it says.
    said = re.findall(rb"<!-- (.+?) -->", svg)
    for tick in (b"0.5", b"1", b"2", b"0.0001", b"0.01", b"50", b"400", b"500"):
        assert tick in said
    assert not [text for text in said if b"10^" in text]
