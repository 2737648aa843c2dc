from dataclasses import replace

from reports.figures.canvas import Figure, arm_styles
from reports.figures.response_curves import draw_responses
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.decay import decay_study, decayed
from tests.reports.drawn import numbers_of
from tests.reports.synthetic import finish, make_study


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
    assert "along rate" in figures["response"].title


def test_a_mean_outside_the_bounds_of_its_metric_is_drawn() -> None:
    study = make_study(("a", "b", "c"))
    figures = draw(study, tuple(finish(run, 1 + 1e-7) for run in study.runs()))
    assert list(figures) == ["response"]


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
