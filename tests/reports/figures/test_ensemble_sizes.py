import pandas as pd

from reports.figures.colours import arm_styles
from reports.figures.ensemble_sizes import draw_ensembles
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic_predictions import reader


def test_the_figure_draws_each_measure_by_the_number_of_networks(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    predicted = gather_predictions(study, arrange(study, results), reader())
    figure = draw_ensembles(predicted, arm_styles(study.arms))
    assert figure is not None
    frame: pd.DataFrame = figure.frame
    assert sorted(set(frame["networks"])) == [1, 2, 3, 5]
    assert set(frame["measure"]) >= {"error", "nll", "brier", "calibration_error", "scaled_nll"}
    assert (frame["ci_low"] <= frame["mean"]).all()
    assert "jackknife intervals over seeds" in figure.caption


def test_there_is_no_ensemble_figure_for_two_runs_per_arm(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    predicted = gather_predictions(study, arrange(study, results), reader(without=3))
    assert draw_ensembles(predicted, arm_styles(study.arms)) is None
