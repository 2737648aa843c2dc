import pytest

from reports.figures.colours import arm_styles
from reports.figures.reliability import draw_reliability
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import rows_of
from tests.reports.synthetic_predictions import NUM_IMAGES, reader


@pytest.mark.parametrize("has_val", [True, False])
def test_reliability_numbers_cover_every_image_and_give_the_calibration_error(
    study: Study, results: tuple[RunResult, ...], has_val: bool
) -> None:
    predicted = gather_predictions(study, arrange(study, results), reader(has_val=has_val))
    figure = draw_reliability(predicted, arm_styles(study.arms))
    assert figure is not None
    rows = rows_of(figure.numbers)
    kinds = {"raw", "scaled"} if has_val else {"raw"}
    assert {row["shown"] for row in rows} == kinds
    for arm in study.arms:
        own = [row for row in rows if (row["arm"], row["shown"]) == (arm, "raw")]
        assert sum(int(row["images"]) for row in own) == 5 * NUM_IMAGES
        assert sum(float(row["share"]) for row in own) == pytest.approx(1)
        right = sum(int(row["images"]) * float(row["accuracy"]) for row in own)
        assert 1 - right / (5 * NUM_IMAGES) == pytest.approx(predicted.arms[arm].error)
