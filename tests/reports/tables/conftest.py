"""Predictions of the runs of a synthetic study."""

import pytest

from reports.numbers.predicted import Predicted, gather_predictions
from reports.numbers.runs import arrange
from tests.reports.synthetic import FINISHED, SMALL
from tests.reports.synthetic_predictions import reader


@pytest.fixture
def predicted() -> Predicted:
    return gather_predictions(SMALL, arrange(SMALL, FINISHED), reader())
