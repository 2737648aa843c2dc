import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from drawn import draw
from matplotlib.figure import Figure as Canvas
from synthetic import finish, make_study

from reports.figures import clip, legend
from sweeps.results import RunResult
from sweeps.study import Study


def test_figures_have_the_same_bytes_whatever_the_order_of_results(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    first, second = draw(study, results), draw(study, results[::-1])
    assert list(first) == ["learning_curves", "final_values"]
    assert first == second


def test_pictures_are_whole_and_carry_no_date(study: Study, results: tuple[RunResult, ...]) -> None:
    for figure in draw(study, results).values():
        assert ElementTree.fromstring(figure.svg).tag.endswith("svg")
        assert b"<dc:date>" not in figure.svg
        width, height = struct.unpack(">II", figure.png[16:24])
        assert width > height > 200
        assert b"tEXt" not in figure.png


def test_captions_give_n_and_the_selection_rule(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    for figure in draw(study, results).values():
        assert "n = 5/5" in figure.caption
        assert "Selection rule none" in figure.caption


@pytest.mark.parametrize("epochs", [0, 1])
def test_an_early_study_draws_what_it_has(epochs: int) -> None:
    study = make_study()
    results = tuple(finish(run, epochs=epochs) for run in study.runs())
    assert list(draw(study, results)) == (["learning_curves"] if epochs else [])


def test_a_legend_of_long_names_stays_inside_the_picture() -> None:
    canvas = Canvas(figsize=(6.8, 3), layout="constrained")
    axes = canvas.subplots()
    for arm in range(8):
        axes.plot([0, 1], [arm, arm], label=f"mix.law beta, mix.law.alpha 0.5, number {arm}")
    legend(canvas, axes)
    canvas.draw_without_rendering()
    box = canvas.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= canvas.bbox.width
    assert 0 <= box.y0 < box.y1 <= canvas.bbox.height + 1


def test_an_oracle_is_named_as_one_in_every_figure() -> None:
    study = make_study()
    data = replace(study.arms["uniform"].data, oracle=True)
    leaking = replace(study.arms["uniform"], data=data)
    study = replace(study, arms={**study.arms, "uniform": leaking})
    figures = draw(study, tuple(finish(run) for run in study.runs()))
    for figure in figures.values():
        assert b"<!-- uniform [oracle] -->" in figure.svg, figure.name
        assert b"<!-- erm -->" in figure.svg


def test_an_axis_of_percent_stays_within_0_and_100() -> None:
    axes = Canvas().subplots()
    axes.plot([0, 1], [-30, 140])
    clip(axes, make_study().problem.metric("test/error"))
    assert axes.get_ylim() == (0, 100)
    axes.set_ylim(-5, 200)
    clip(axes, make_study().problem.metric("test/nll"))
    assert axes.get_ylim() == (-5, 200)
