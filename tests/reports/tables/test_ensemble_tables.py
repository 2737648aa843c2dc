import io
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import softmax
from torchmetrics.functional.classification import multiclass_calibration_error

from reports.numbers.predicted import Predicted
from reports.tables.ensemble_tables import size_table, spread_table
from reports.tables.frames import prediction_frames
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import rows_of
from tests.reports.synthetic_predictions import reader, split_of

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


def test_exported_predictions_give_the_numbers_of_the_ensemble_table(
    study: Study, results: tuple[RunResult, ...], predicted: Predicted
) -> None:
    frame = pd.concat(prediction_frames(study, results, reader()))
    frame = frame[(frame["split"] == "test") & (frame["weights"] == "last")]
    sizes, spread = size_table(predicted, "erm", EQUAL), spread_table(predicted)
    rows = {(row["arm"], row["size"]): row for row in rows_of(sizes.csv())}
    for row in rows_of(spread.csv()):
        own = frame[frame["arm"] == row["arm"]].sort_values(["seed", "index"])
        logits = np.stack(own["logits"]).astype(float).reshape(5, 600, 4)
        labels = own["label"].to_numpy().reshape(5, 600)[0]
        chances = softmax(logits, axis=2)
        wrong = chances.argmax(2) != labels
        variance = wrong.mean(1).var(ddof=1)
        noise = wrong.var(0, ddof=1).mean() / 600
        assert float(row["noise"]) == pytest.approx(noise**0.5)
        rest = max(0, variance - noise) * 600 / 599
        assert float(row["distribution"]) == pytest.approx(rest**0.5)
        pairs = [(chances[a] + chances[b]) / 2 for a, b in combinations(range(5), 2)]
        of_two = rows[row["arm"], "2"]
        nll = [-np.log(pair[np.arange(600), labels]).mean() for pair in pairs]
        assert float(of_two["nll_mean"]) == pytest.approx(np.mean(nll))
        brier = [((pair - np.eye(4)[labels]) ** 2).sum(1).mean() for pair in pairs]
        assert float(of_two["brier_mean"]) == pytest.approx(np.mean(brier))
        gaps = [
            multiclass_calibration_error(
                torch.tensor(pair), torch.tensor(labels), num_classes=4, n_bins=15
            )
            for pair in pairs
        ]
        assert float(of_two["calibration_error_mean"]) == pytest.approx(np.mean(gaps), abs=1e-6)
