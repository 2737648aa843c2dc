import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace

import pytest
from matplotlib.figure import Figure as Canvas

from mixup_core.config.building import with_values
from reports.figures import response_curves as response_figures
from reports.figures.canvas import Figure
from reports.figures.colours import arm_styles
from reports.figures.response_curves import draw_responses
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.decay import decay_study, decayed
from tests.reports.drawn import numbers_of
from tests.reports.synthetic import AT_A_BOUND, at_a_bound, finish, make_study


def draw(study: Study, results: tuple[RunResult, ...]) -> dict[str, Figure]:
    figures = draw_responses(study, tabulate(study, results), arm_styles(study.arms))
    return {figure.name: figure for figure in figures}


def test_results_are_drawn_along_the_setting_in_which_arms_differ(decay: None) -> None:
    study = decay_study(rates=(4.0, 1.0, 2.0))
    figures = draw(study, tuple(map(decayed, study.runs())))
    assert list(figures) == ["response"]
    rows = numbers_of(figures["response"])
    assert [(row["metric"], row["rate"], row["arm"]) for row in rows] == [
        ("margin", "1.0", "rate 1"), ("margin", "2.0", "rate 2"), ("margin", "4.0", "rate 4"),
    ]  # fmt: skip
    means = [1 * 4 + 0.02 / 3, 2 * 4 + 0.02 / 3, 4 * 4 + 0.02 / 3]
    assert [float(row["mean"]) for row in rows] == means
    assert ElementTree.fromstring(figures["response"].svg).tag.endswith("svg")
    assert "along rate" in figures["response"].title


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Canvas]:
    """Return a list to which every finished canvas is added."""
    canvases: list[Canvas] = []
    finished = response_figures.finished
    monkeypatch.setattr(
        response_figures,
        "finished",
        lambda canvas, **words: canvases.append(canvas) or finished(canvas, **words),
    )
    return canvases


def test_lines_with_many_arms_have_distinct_looks(
    drawn: list[Canvas],
) -> None:
    plain = make_study(arms=("erm", "midpoint"), seeds=(0, 1))
    rates = (0.3, 0.2, 0.14, 0.09, 0.07, 0.06)
    arms = {
        f"{arm} lr={rate}": with_values(config, {"optimizer.lr": rate})
        for arm, config in plain.arms.items()
        for rate in rates
    }
    study = replace(plain, arms=arms, baseline=next(iter(arms)))
    draw(study, tuple(finish(run, 0.2) for run in study.runs()))
    handles, labels = drawn[0].axes[0].get_legend_handles_labels()
    assert labels == ["erm", "midpoint"]
    assert [handle.lines[0].get_color() for handle in handles] == ["#0072B2", "#E69F00"]


def test_tick_labels_do_not_overlap_and_include_both_ends(decay: None, drawn: list[Canvas]) -> None:
    rates = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 8.0, 16.0, 64.0)
    study = decay_study(rates=rates)
    draw(study, tuple(map(decayed, study.runs())))
    labels = drawn[0].axes[0].get_xticklabels()
    assert (labels[0].get_text(), labels[-1].get_text()) == ("0.05", "64")
    assert 4 < len(labels) < len(rates)
    boxes = [label.get_window_extent() for label in labels]
    assert max(box.count_overlaps(boxes) for box in boxes) == 1, "it overlaps itself alone"


def test_two_varying_settings_give_a_map_with_a_gap_for_a_missing_arm(decay: None) -> None:
    study = decay_study(rates=(1.0, 2.0, 3.0))
    arms = {
        f"{arm} long={epochs}": replace(config, epochs=epochs)
        for arm, config in study.arms.items()
        for epochs in (2, 3, 4)
    }
    study = replace(study, arms=arms, baseline=next(iter(arms)))
    gone = next(reversed(arms))
    results = tuple(decayed(run) for run in study.runs() if run.arm != gone)
    figures = draw(study, results)
    assert list(figures) == ["response", "phase_map"]
    rows = numbers_of(figures["phase_map"])
    assert len(rows) == 8
    assert "Hatched: not measured" in figures["phase_map"].caption


def test_a_map_of_alpha_and_switch_epoch_shows_erm_along_switch_0() -> None:
    alphas, switches = (0.25, 1.0, 4.0), (0, 5, 10)
    plain = make_study(arms=("erm",), seeds=(0, 1))
    grid = {
        f"alpha={alpha} switch={switch}": with_values(
            plain.arms["erm"], {"mix.law": {"beta": alpha}, "mix.switch_epoch": switch}
        )
        for alpha in alphas
        for switch in switches
    }
    study = replace(plain, arms={**plain.arms, **grid})
    results = tuple(finish(run, 0.2 if run.arm in grid else 0.3) for run in study.runs())
    table = tabulate(study, results)
    assert [row.arm for row in table.printed] == [
        "erm", *(arm for arm in grid if not arm.endswith("switch=0")),
    ]  # fmt: skip
    assert table.cells[0][0] == "erm and 3 equal arms"
    figures = draw(study, results)
    rows = numbers_of(figures["phase_map"])
    places = {(float(r["mix.law.alpha"]), int(float(r["mix.switch_epoch"]))) for r in rows}
    assert places == {(alpha, switch) for alpha in alphas for switch in switches}
    assert all(row["n"] == "2" for row in rows)
    assert "Not on the map: erm 30.0 " in figures["phase_map"].caption
    lines = {row["line"] for row in numbers_of(figures["response"]) if row["line"] != "erm"}
    assert len(lines) == 3
    assert "Horizontal lines: erm, without this setting." in figures["response"].caption


def test_a_map_has_the_arms_that_never_switch_and_frames_the_best() -> None:
    plain = make_study(arms=("erm",), seeds=(0, 1))
    grid = {
        f"alpha={alpha} switch={switch}": with_values(
            plain.arms["erm"], {"mix.law": {"beta": alpha}, "mix.switch_epoch": switch}
        )
        for alpha in (0.25, 4.0)
        for switch in (5, 8, None)
    }
    study = replace(plain, arms={**plain.arms, **grid})
    best = "alpha=4.0 switch=None"
    short = "alpha=0.25 switch=5"
    results = tuple(
        finish(run, 0.15 if run.arm == best else 0.2)
        for run in study.runs()
        if (run.arm, run.seed) != (short, 1)
    )
    figure = draw(study, results)["phase_map"]
    places = [(row["mix.law.alpha"], row["mix.switch_epoch"]) for row in numbers_of(figure)]
    assert places == [
        ("0.25", "5.0"), ("4.0", "5.0"), ("0.25", "8.0"), ("4.0", "8.0"), ("0.25", ""),
        ("4.0", ""),
    ]  # fmt: skip
    said = re.findall(rb"<!-- (.+?) -->", figure.svg)  # text is drawn as paths, after what it says
    assert said.count(b"null") == 1
    assert said.count(b"15.0") == 1
    assert b"n=1" in said
    assert "null: mix.switch_epoch is not set" in figure.caption
    assert "Framed: the best mean" in figure.caption
    assert f"n = 2/2 for each arm, except {short} n = 1/2" in figure.caption
    framed = re.findall(rb"stroke: #d55e00", figure.svg)
    assert len(framed) == 1


def test_a_map_of_two_by_three_is_drawn_but_not_a_map_of_two_by_two(decay: None) -> None:
    study = decay_study(rates=(1.0, 2.0))
    for lengths, names in (((2, 3), []), ((2, 3, 4), ["response", "phase_map"])):
        arms = {
            f"{arm} long={epochs}": replace(config, epochs=epochs)
            for arm, config in study.arms.items()
            for epochs in lengths
        }
        grid = replace(study, arms=arms, baseline=next(iter(arms)))
        assert list(draw(grid, tuple(map(decayed, grid.runs())))) == names


def test_arms_without_a_varying_number_have_no_response_figure(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    assert draw(study, results) == {}
    assert draw(make_study(), ()) == {}


@pytest.mark.parametrize("errors", AT_A_BOUND)
def test_every_interval_in_the_table_is_drawn(errors: Sequence[float], drawn: list[Canvas]) -> None:
    plain = make_study(arms=("erm",))
    arms = {
        f"erm lr={rate}": with_values(plain.arms["erm"], {"optimizer.lr": rate})
        for rate in (0.1, 0.2, 0.3)
    }
    study = replace(plain, arms=arms, baseline=next(iter(arms)))
    results = at_a_bound(study, errors)
    draw(study, results)
    bars = drawn[0].axes[0].containers[0].lines[2][0].get_segments()
    told = [row.summaries["test/error"] for row in tabulate(study, results).rows]
    ends = [100 * end for s in told for end in (s.ci_low or 0.0, s.ci_high or 0.0)]
    assert [height for bar in bars for height in bar[:, 1]] == pytest.approx(ends)
