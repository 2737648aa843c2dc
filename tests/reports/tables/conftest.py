"""Predictions of the runs of a synthetic study."""

import pytest

from reports.numbers.predicted import Predicted, gather_predictions
from reports.numbers.runs import arrange
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic_predictions import reader


@pytest.fixture
def predicted(study: Study, results: tuple[RunResult, ...]) -> Predicted:
    return gather_predictions(study, arrange(study, results), reader())
