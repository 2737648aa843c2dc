import json
from pathlib import Path

import numpy as np
import pandas as pd

import mixsweep
from mixsweep.cli.epochs_file import _is_export
from mixup_core.predictions import Predictions
from mixup_core.store.checkpoints import Store
from sweeps.state.results import read_results
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import train
from tests.reports.synthetic_predictions import split_of


def test_every_epoch_of_every_run_is_a_row_in_both_formats(tmp_path: Path) -> None:
    train(tmp_path / "runs", "digits", but=("midpoint", 1))
    (tmp_path / "exports").mkdir()
    for name in ("exports/epochs.parquet", "epochs.csv"):
        assert type_in("report", "digits", "--epochs", str(tmp_path / name)).return_value == 0
    frame = pd.read_parquet(tmp_path / "exports" / "epochs.parquet")
    assert len(frame) == 5 * 3
    pd.testing.assert_frame_equal(frame, mixsweep.load("digits", home=tmp_path / "runs").epochs)
    csv = pd.read_csv(tmp_path / "epochs.csv")
    pd.testing.assert_frame_equal(csv, frame, check_dtype=False)


def test_an_export_of_an_earlier_version_is_recognised(tmp_path: Path) -> None:
    columns = ["study", "arm", "seed", "run_key", "outcome"]
    for name, is_own in (("own", True), ("other", False)):
        frame = pd.DataFrame(columns=columns[not is_own :])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
        assert _is_export(tmp_path / f"{name}.csv") is is_own
        assert _is_export(tmp_path / f"{name}.parquet") is is_own


def test_every_prediction_is_a_row_in_both_formats(tmp_path: Path) -> None:
    study, store = train(tmp_path / "runs"), Store(str(tmp_path / "runs" / "store"))
    for result in read_results(study.runs(), store):
        arm, seed = result.run.arm, result.run.seed
        if arm != "midpoint":
            splits = {"test": split_of(arm, seed, size=5), "val": split_of(arm, seed, size=3)}
            content = Predictions(splits=splits).to_bytes()
            store.predictions.write(result.stage.key, result.records[-1], content)
    (tmp_path / "exports").mkdir()
    said = type_in(
        "report", "digits", "--predictions", str(tmp_path / "exports" / "logits.parquet")
    )
    assert said.return_value == 0
    assert "64 rows of 4 runs" in said.stdout
    frame = pd.read_parquet(tmp_path / "exports" / "logits.parquet")
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
