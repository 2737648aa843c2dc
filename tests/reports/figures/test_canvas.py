"""Tests of canvases and colours."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure as Canvas

from reports.figures.canvas import arm_styles, scale_values
from tests.reports.drawn import draw
from tests.reports.synthetic import FINISHED, SMALL, finish, make_study


def test_a_plain_method_keeps_its_colour_for_any_arm_name_and_other_arms() -> None:
    plain = arm_styles(SMALL.arms)
    assert [colour for colour, _ in plain.values()] == ["#0072B2", "#E69F00", "#009E73"]
    arms = make_study(arms=("uniform", "erm")).arms
    renamed = arm_styles({"mine": arms["uniform"], "theirs": arms["erm"]})
    assert (renamed["mine"], renamed["theirs"]) == (plain["uniform"], plain["erm"])


def test_thirty_arms_have_distinct_looks_in_their_order() -> None:
    study = make_study(arms=(*(f"beta-{index}" for index in range(29)), "erm"))
    styles = arm_styles(study.arms)
    assert len(set(styles.values())) == 30
    assert list(styles) == list(study.arms)


def test_matplotlib_settings_of_the_user_do_not_change_figures() -> None:
    outside: dict[str, object] = {
        "text.usetex": True,
        "figure.facecolor": "black",
        "text.color": "white",
        "axes.labelcolor": "white",
        "savefig.dpi": 30,
        "savefig.bbox": "tight",
        "svg.fonttype": "none",
        "font.size": 30,
        "axes.prop_cycle": mpl.cycler(color=["red"]),
        "axes.titlelocation": "left",
    }
    before = draw(SMALL, FINISHED)
    with mpl.rc_context(outside):
        assert draw(SMALL, FINISHED) == before
        assert all(mpl.rcParams[name] == value for name, value in outside.items())


@pytest.mark.parametrize("epochs", [0, 1])
def test_an_unfinished_study_draws_only_learning_curves(epochs: int) -> None:
    results = tuple(finish(run, epochs=epochs) for run in SMALL.runs())
    assert list(draw(SMALL, results)) == (["learning_curves"] if epochs else [])


def test_an_axis_of_percent_stays_within_0_and_100() -> None:
    axes = Canvas().subplots()
    axes.plot([0, 1], [-30, 140])
    scale_values(axes, SMALL.problem.metric("test/error"), [1e-9, 100])
    assert axes.get_ylim() == (0, 100)
    assert axes.get_yscale() == "linear"
    axes.set_ylim(-5, 200)
    scale_values(axes, SMALL.problem.metric("test/nll"), [-30, 140])
    assert axes.get_ylim() == (-5, 200)
