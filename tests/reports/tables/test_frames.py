"""Frames: results as DataFrames, with each value at its run, epoch or image."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mixup_core.config.building import with_values
from mixup_core.images.choices.models import Mlp
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.predictions import AVERAGED, Predictions, Split, images_digest
from mixup_core.records import EpochRecord
from reports.numbers.runs import runs_csv
from reports.tables.frames import arms_frame, epochs_frame, prediction_frames, runs_frame
from reports.tables.table import tabulate
from sweeps.reading.study_file import study_of
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import ended, finish, make_study
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


def test_a_missing_number_of_an_arm_is_nan(study: Study, unfinished: list[RunResult]) -> None:
    frame = arms_frame(study, unfinished).set_index("arm")
    assert np.isnan(frame.loc["midpoint", "test/error_mean"])
    assert frame.loc["uniform", "test/error_mean"] > 0
    assert not any(value is None for value in frame.to_numpy().flatten())


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


def test_only_settings_that_differ_between_arms_have_a_column(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    by_arm = epochs_frame(study, results).groupby("arm").first()
    assert by_arm["config.mix.law"].to_dict() == {
        "erm": "erm", "midpoint": "midpoint", "uniform": "beta",
    }  # fmt: skip
    assert by_arm["config.mix.law.alpha"].dropna().to_dict() == {"uniform": 1.0}
    one = make_study(arms=("erm",))
    alone = epochs_frame(one, [finish(run) for run in one.runs()])
    assert [name for name in alone.columns if name.startswith("config.")] == []


def test_a_setting_that_is_a_list_is_written_as_json(study: Study) -> None:
    arms = {
        f"wide {width}": with_values(study.arms["erm"], {"model": Mlp(hidden=(width, 4))})
        for width in (8, 16)
    }
    wide = replace(study, arms=arms, baseline="wide 8", seeds=(0,))
    frame = epochs_frame(wide, ended(wide, {}))
    assert list(frame["config.model.hidden"].unique()) == ["[8, 4]", "[16, 4]"]


def test_a_metric_measured_at_some_epochs_is_nan_at_other_epochs(study: Study) -> None:
    one = replace(study, seeds=(0,))
    first, *others = ended(one, {})
    assert first.stage is not None
    seldom = {True: {"train/loss": 1.0, "a": 2.0}, False: {"train/loss": 1.0}}
    records = [EpochRecord(epoch=n, metrics=seldom[n % 2 == 1]) for n in range(10)]
    sparse = replace(first, stage=replace(first.stage, records=records))
    frame = epochs_frame(one, [sparse, *others])
    assert np.isnan(frame["a"]).tolist() == [True, False] * 5 + [True] * 20
    assert np.isnan(frame["test/error"]).tolist() == [True] * 10 + [False] * 20


def test_a_frame_without_results_has_columns_but_no_rows(study: Study) -> None:
    frame = epochs_frame(study, [])
    assert len(frame) == 0
    assert list(frame.columns) == [*OF_RUN, "outcome", "epoch", "seconds", "stored_at_ms"]
    assert list(runs_frame(study, [])["outcome"]) == ["missing"] * 15
    assert list(arms_frame(study, [])["n"]) == [0, 0, 0]


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


def test_a_run_without_predictions_has_no_frame(study: Study) -> None:
    results = ended(study, {})
    frames = prediction_frames(study, results, reader(has_val=False, without=4))
    assert {(frame["arm"].iloc[0], frame["seed"].iloc[0]) for frame in frames} == {
        (arm, 4) for arm in study.arms
    }
    assert list(prediction_frames(study, results, lambda results: [None] * len(results))) == []


def test_predictions_of_a_run_are_read_lazily(study: Study) -> None:
    read, asked = reader(has_val=False), []

    def noting(results: Sequence[RunResult]) -> Sequence[Predictions | None]:
        asked.extend((result.run.arm, result.run.seed) for result in results)
        return read(results)

    frames = prediction_frames(study, ended(study, {}), noting)
    assert asked == []
    for _ in range(2):
        next(frames)
    assert asked == [("erm", 0)]
    next(frames)
    assert asked == [("erm", 0), ("erm", 1)]


@pytest.mark.parametrize("held_out", [{"folds": 3, "test": False}, {"val_size": 4}, {"folds": 2}])
def test_predictions_of_image_folders_have_the_file_names_of_held_out_images(
    held_out: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    reds = {}
    for number in range(14):
        split, kind = ("test" if number > 10 else "train"), ("big dog" if number % 2 else "кот")
        file = tmp_path / "pets" / split / kind / f"{number} #1.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(file)
        reds[split, f"{kind}/{file.name}"] = number
    data = {"name": "image-folder", "folder": str(tmp_path / "pets"), "image_size": 4}
    base = {"data": data | held_out, "model": {"name": "linear"}, "epochs": 1, "batch_size": 2}
    study = study_of(
        {"study": "pets", "base": base, "arms": {"erm": {"mix.law": "erm"}}, "seeds": 3}
    )
    images = {run.seed: load(run.config.data).held_out(DataConfig()) for run in study.runs()}

    def read(results: Sequence[RunResult]) -> list[Predictions]:
        (result,) = results
        splits = {
            name: Split(
                labels=of.labels.numpy(),
                images=images_digest(of.pixels.numpy(), of.labels.numpy()),
                logits={"": np.zeros((len(of), 2), np.float32)},
            )
            for name, of in images[result.run.seed].items()
        }
        return [Predictions(splits=splits)]

    frames = list(prediction_frames(study, ended(study, {}), read))
    assert {frame["seed"].iloc[0] for frame in frames} == {0, 1, 2}
    for frame in frames:
        seed, split = frame["seed"].iloc[0], frame["split"].iloc[0]
        place = "test" if split == "test" else "train"
        shown = images[seed][split].pixels[:, 0, 0, 0].tolist()
        assert [reds[place, file] for file in frame["file"]] == shown
        assert [file.partition("/")[0] for file in frame["file"]] == list(frame["class"])
