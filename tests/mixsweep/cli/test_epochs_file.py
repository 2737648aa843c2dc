import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import Result

import mixsweep
from mixup_core.predictions import AVERAGED, Predictions, Split
from mixup_core.store.checkpoints import Store
from sweeps.state.results import read_results
from tests.mixsweep.cli.trained import error_of, train

Type = Callable[..., Result]


def test_every_epoch_of_every_run_is_a_row_in_both_formats(tmp_path: Path, type_in: Type) -> None:
    train(tmp_path / "runs", "digits", but=("midpoint", 1))
    (tmp_path / "exports").mkdir()
    for name in ("exports/epochs.parquet", "epochs.csv"):
        assert type_in("report", "digits", "--epochs", str(tmp_path / name)).return_value == 0
    frame = pd.read_parquet(tmp_path / "exports" / "epochs.parquet")
    assert len(frame) == 5 * 3
    for row in frame.to_dict("records"):
        place = ["erm", "midpoint", "uniform"].index(row["arm"])
        assert row["test/error"] == error_of(place, row["seed"], row["epoch"] - 1)
        assert row["seconds"] == row["epoch"]
    assert set(frame["config.mix.law"]) == {"erm", "midpoint", "beta"}
    assert not frame.duplicated(["run_key", "epoch"]).any()
    csv = pd.read_csv(tmp_path / "epochs.csv")
    pd.testing.assert_frame_equal(csv, frame, check_dtype=False)


def _predict(home: Path, but: str) -> dict[tuple[str, int], Predictions]:
    """Store predictions of each run except those of one arm; one run has averaged weights too."""
    study, store = train(home), Store(str(home / "store"))
    found = {}
    for result in read_results(study.runs(), store):
        run = result.run
        if run.arm == but:
            continue
        rng = np.random.default_rng([run.seed, len(run.arm)])
        splits = {}
        for name, size in (("val", 3), ("test", 5)):
            weights = ("", AVERAGED) if (run.arm, run.seed) == ("erm", 0) else ("",)
            splits[name] = Split(
                labels=rng.integers(10, size=size),
                images="ab" * 16,
                logits={w: rng.normal(size=(size, 10)).astype(np.float32) for w in weights},
            )
        predictions = Predictions(splits=splits)
        assert result.stage is not None
        store.predictions.write(result.stage.key, result.records[-1], predictions.to_bytes())
        found[run.arm, run.seed] = predictions
    return found


def test_every_prediction_is_a_row_in_both_formats(tmp_path: Path, type_in: Type) -> None:
    predicted = _predict(tmp_path / "runs", but="midpoint")
    (tmp_path / "exports").mkdir()
    said = type_in(
        "report", "digits", "--predictions", str(tmp_path / "exports" / "logits.parquet")
    )
    assert said.return_value == 0
    assert "40 rows of 4 runs" in said.stdout
    frame = pd.read_parquet(tmp_path / "exports" / "logits.parquet")
    assert list(frame.columns) == [
        "study", "arm", "seed", "run_key", "split", "weights", "images", "index", "file", "label",
        "class", "logits",
    ]  # fmt: skip
    assert frame["run_key"].nunique() == len(predicted) == 4
    for (arm, seed, name, weights), rows in frame.groupby(["arm", "seed", "split", "weights"]):
        split = predicted[arm, seed].splits[name]
        np.testing.assert_array_equal(rows["label"], split.labels)
        np.testing.assert_array_equal(rows["index"], range(len(split.labels)))
        logits = split.logits["" if weights == "last" else f"_{weights}"]
        np.testing.assert_array_equal(np.stack(list(rows["logits"])), logits)
    loaded = mixsweep.load("digits", home=tmp_path / "runs").predictions
    pd.testing.assert_frame_equal(loaded.drop(columns="logits"), frame.drop(columns="logits"))
    np.testing.assert_array_equal(np.stack(list(loaded["logits"])), np.stack(list(frame["logits"])))
    out = tmp_path / "predictions.csv"
    assert type_in("report", "digits", "--predictions", str(out)).return_value == 0
    csv = pd.read_csv(out, keep_default_na=False)
    read = np.array([json.loads(text) for text in csv["logits"]], dtype=np.float32)
    np.testing.assert_array_equal(read, np.stack(list(frame["logits"])))
    pd.testing.assert_frame_equal(csv.drop(columns="logits"), frame.drop(columns="logits"))
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "exports", "predictions.csv"}
