import io

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from reports.numbers.predicted import Predicted
from reports.tables.ensemble_tables import size_table, spread_table
from tests.reports.synthetic import rows_of
from tests.reports.synthetic_predictions import split_of

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
    splits = [split_of("uniform", seed) for seed in range(5)]
    together = np.mean([softmax(s.logits[""].astype(float), axis=1) for s in splits], axis=0)
    labels = splits[0].labels
    row = frame[(frame["arm"] == "uniform") & (frame["size"] == 5)].iloc[0]
    assert row["error_mean"] == pytest.approx(np.mean(together.argmax(1) != labels))
    nll = -np.log(together[np.arange(len(labels)), labels]).mean()
    assert row["nll_mean"] == pytest.approx(nll)
    assert row["scaled_nll_mean"] <= row["nll_mean"] + 0.01
    assert (frame["error_image_low"] <= frame["error_mean"]).all()


def test_the_spread_of_each_arm_is_computed_from_its_errors(predicted: Predicted) -> None:
    listing = spread_table(predicted)
    for row in rows_of(listing.csv()):
        errors = [run.error for run in predicted.arms[row["arm"]].runs.values()]
        assert float(row["total"]) == pytest.approx(np.std(errors, ddof=1))
        assert float(row["distribution_low"] or 0) <= float(row["distribution"])
        assert row["images"] == "600"
