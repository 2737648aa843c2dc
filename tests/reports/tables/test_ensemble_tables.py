import io

import numpy as np
import pandas as pd
import pytest

from reports.numbers.predicted import Predicted
from reports.tables.ensemble_tables import size_table, spread_table
from tests.reports.synthetic import rows_of

EQUAL = {arm: arm for arm in ("erm", "midpoint", "uniform")}


def test_the_ensemble_table_has_a_line_with_all_measures_per_arm_and_size(
    predicted: Predicted,
) -> None:
    listing = size_table(predicted, "erm", EQUAL)
    frame = pd.read_csv(io.StringIO(listing.csv()))
    assert [*zip(frame["arm"], frame["size"], strict=True)] == [
        (arm, size) for arm in EQUAL for size in (1, 2, 3, 5)
    ]
    assert len(listing.header) == len(listing.cells[0])
    row = frame[(frame["arm"] == "uniform") & (frame["size"] == 5)].iloc[0]
    for name, measure in predicted.arms["uniform"].sizes[5].measures.items():
        assert row[f"{name}_mean"] == pytest.approx(measure.mean)
    assert (frame["error_image_low"] <= frame["error_mean"]).all()


def test_the_spread_of_each_arm_is_computed_from_its_errors(predicted: Predicted) -> None:
    listing = spread_table(predicted)
    for row in rows_of(listing.csv()):
        errors = [run.error for run in predicted.arms[row["arm"]].runs.values()]
        assert float(row["total"]) == pytest.approx(np.std(errors, ddof=1))
        assert float(row["distribution_low"] or 0) <= float(row["distribution"])
        assert row["images"] == "600"
