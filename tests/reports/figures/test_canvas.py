import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure as Canvas

from mixup_core.problem import Metric
from reports.figures.canvas import legend, scale_values, spell_scales
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.drawn import draw
from tests.reports.synthetic import finish, make_study


def test_figures_have_the_same_bytes_for_any_order_of_results(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    first, second = draw(study, results), draw(study, results[::-1])
    assert list(first) == ["learning_curves", "final_values"]
    assert first == second


@pytest.mark.parametrize(
    "outside",
    [
        {"text.usetex": True},
        {"figure.facecolor": "black", "text.color": "white", "axes.labelcolor": "white"},
        {"savefig.dpi": 30, "savefig.bbox": "tight", "svg.fonttype": "none"},
        {
            "font.size": 30,
            "axes.prop_cycle": mpl.cycler(color=["red"]),
            "axes.titlelocation": "left",
        },
    ],
    ids=lambda outside: next(iter(outside)),
)
def test_matplotlib_settings_of_the_user_do_not_change_figures(
    study: Study, results: tuple[RunResult, ...], outside: dict[str, object]
) -> None:
    before = draw(study, results)
    with mpl.rc_context(outside):
        assert draw(study, results) == before
        assert all(mpl.rcParams[name] == value for name, value in outside.items())


def test_image_files_are_complete_and_contain_no_date(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    for figure in draw(study, results).values():
        assert ElementTree.fromstring(figure.svg).tag.endswith("svg")
        assert b"<dc:date>" not in figure.svg
        width, height = struct.unpack(">II", figure.png[16:24])
        assert width > height > 200
        assert b"tEXt" not in figure.png


def test_captions_state_n_and_the_selection_rule(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    for figure in draw(study, results).values():
        assert "n = 5/5" in figure.caption
        assert "(selection rule: none)." in figure.caption


@pytest.mark.parametrize("epochs", [0, 1])
def test_an_unfinished_study_draws_only_learning_curves(epochs: int) -> None:
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


@pytest.mark.parametrize("count", [1, 4, 5, 7, 8])
def test_a_legend_is_read_across_in_the_order_of_the_arms(count: int) -> None:
    canvas = Canvas(figsize=(4.4, 3), layout="constrained")
    axes = canvas.subplots()
    names = [f"arm {place}, so called" for place in range(count)]
    for name in names:
        axes.plot([0, 1], [0, 1], label=name)
    legend(canvas, axes)
    canvas.draw_without_rendering()
    texts = canvas.legends[0].get_texts()
    places = {text.get_text(): text.get_window_extent() for text in texts}
    read = sorted(places, key=lambda name: (-round(places[name].y0), places[name].x0))
    assert read == names


def test_an_oracle_is_marked_in_every_figure() -> None:
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
    scale_values(axes, make_study().problem.metric("test/error"), [1e-9, 100])
    assert axes.get_ylim() == (0, 100)
    assert axes.get_yscale() == "linear"
    axes.set_ylim(-5, 200)
    scale_values(axes, make_study().problem.metric("test/nll"), [-30, 140])
    assert axes.get_ylim() == (-5, 200)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((1e-18, 1e-3, 0.1), "log"),
        ((0.02, 5e7), "log"),
        ((0.02, 10), "linear"),
        ((0.0, 1e-3, 5e7), "linear"),
        ((-1e-3, 1e-3, 5e7), "linear"),
        ((), "linear"),
    ],
)
@pytest.mark.parametrize("across", [False, True])
def test_positive_values_over_three_decades_are_drawn_on_a_log_axis(
    values: tuple[float, ...], scale: str, *, across: bool
) -> None:
    axes = Canvas().subplots()
    places = list(range(len(values)))
    axes.plot(*((values, places) if across else (places, values)))
    band = axes.fill_betweenx if across else axes.fill_between
    band(places, [-1.0] * len(values), values)
    scale_values(axes, Metric(label="excess", unit="nats"), values, across=across)
    assert (axes.get_xscale() if across else axes.get_yscale()) == scale
    low, high = axes.get_xlim() if across else axes.get_ylim()
    assert ("logarithmic axis" in spell_scales([axes], across=across)) == (scale == "log")
    if scale == "log":
        assert min(values) / 10 < low < min(values) < max(values) < high < 100 * max(values)
