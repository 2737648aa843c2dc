"""Frames: results as DataFrames, with each value at its run, epoch or image."""

import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mixup_core.predictions import AVERAGED
from reports.numbers.runs import runs_csv
from reports.tables.frames import arms_frame, epochs_frame, prediction_frames, runs_frame
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import ended, make_study
from tests.reports.synthetic_predictions import NUM_CLASSES, NUM_IMAGES, reader, split_of

OF_RUN = ["study", "arm", "seed", "run_key"]


@pytest.fixture
def unfinished(study: Study) -> list[RunResult]:
    """All runs but three: one interrupted, one diverged, and one without results."""
    return ended(
        study,
        {
            ("erm", 3): {"epochs": 2},
            ("midpoint", 1): {"epochs": 4, "failure": "loss is nan", "kind": "diverged"},
            ("uniform", 0): {"epochs": 0},
        },
    )


def read_back(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


def test_the_arms_frame_equals_table_csv_to_every_digit(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    frame = arms_frame(study, results)
    assert list(frame["arm"]) == list(study.arms)
    pd.testing.assert_frame_equal(
        frame, read_back(tabulate(study, results).csv()), check_dtype=False, rtol=1e-15
    )


def test_the_runs_frame_equals_runs_csv_to_every_digit(
    study: Study, unfinished: list[RunResult]
) -> None:
    frame = runs_frame(study, unfinished)
    pd.testing.assert_frame_equal(
        frame, read_back(runs_csv(study, unfinished)), check_dtype=False, rtol=1e-15
    )
    assert len(frame) == 15
    of = frame.set_index(["arm", "seed"])
    for run, (outcome, epochs) in {
        ("erm", 3): ("partial", 2),
        ("midpoint", 1): ("diverged", 4),
        ("uniform", 0): ("missing", 0),
    }.items():
        assert (of.loc[run, "outcome"], of.loc[run, "epochs"]) == (outcome, epochs)
        assert np.isnan(of.loc[run, "test/error"])
    assert not any(value is None for value in frame.to_numpy().flatten())


def test_a_row_of_the_epochs_frame_has_run_settings_metrics_and_facts(
    study: Study, unfinished: list[RunResult]
) -> None:
    frame = epochs_frame(study, unfinished[::-1])
    by_run = {(result.run.arm, result.run.seed): result for result in unfinished}
    rows = iter(frame.to_dict("records"))
    for arm in study.arms:
        for seed in study.seeds:
            result = by_run[arm, seed]
            for record, facts in zip(result.records, result.facts, strict=True):
                row = next(rows)
                assert (row["study"], row["arm"], row["seed"]) == ("small", arm, seed)
                assert row["run_key"] == result.run.key
                assert row["outcome"] == result.outcome
                assert row["epoch"] == record.epoch + 1
                assert (row["seconds"], row["stored_at_ms"]) == (facts.seconds, facts.stored_at_ms)
                assert {name: row[name] for name in record.metrics} == record.metrics
    assert next(rows, None) is None
    assert len(frame) == 12 * 10 + 2 + 4
    assert list(frame.columns) == [
        *OF_RUN, "outcome", "epoch", "seconds", "stored_at_ms", "config.mix.law",
        "config.mix.law.alpha", "train/loss", "train/excess_loss", "test/error", "test/nll",
        "test/calibration_error",
    ]  # fmt: skip


@pytest.mark.parametrize("frame_of", [arms_frame, runs_frame, epochs_frame])
def test_results_of_another_study_are_refused(
    frame_of: Callable[..., pd.DataFrame], results: tuple[RunResult, ...]
) -> None:
    with pytest.raises(ValueError, match=r"results must belong to runs of the study.*uniform"):
        frame_of(make_study(arms=("erm", "midpoint")), results)


def test_the_predictions_frame_has_a_row_of_logits_per_image_split_and_network(
    study: Study,
) -> None:
    results = ended(study, {})
    frames = list(prediction_frames(study, results[::-1], reader()))
    of = ["arm", "seed", "split", "weights"]
    assert [tuple(frame[of].iloc[0]) for frame in frames] == [
        (arm, seed, split, weights)
        for arm in study.arms
        for seed in study.seeds
        for split in ("test", "val")
        for weights in ("last", "averaged")
    ]
    keys = {(result.run.arm, result.run.seed): result.run.key for result in results}
    for frame in frames:
        assert list(frame.columns) == [
            *OF_RUN, "split", "weights", "images", "index", "file", "label", "class", "logits",
        ]  # fmt: skip
        arm, seed, name = (frame[column].iloc[0] for column in ("arm", "seed", "split"))
        shift, size = (0, NUM_IMAGES) if name == "test" else (1, 900)
        split = split_of(arm, int(seed), shift=shift, size=size)
        logits = split.logits["" if frame["weights"].iloc[0] == "last" else AVERAGED]
        stacked = np.stack(list(frame["logits"]))
        assert stacked.shape == (size, NUM_CLASSES)
        assert stacked.dtype == np.float32
        np.testing.assert_array_equal(stacked, logits)
        np.testing.assert_array_equal(frame["label"], split.labels)
        np.testing.assert_array_equal(frame["index"], range(size))
        assert set(frame["images"]) == {split.images}
        assert set(frame["run_key"]) == {keys[arm, seed]}
        assert set(frame["study"]) == {"small"}
