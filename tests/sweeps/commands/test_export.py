from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from trained import error_of, train

from sweeps.cli import commands
from sweeps.commands.request import RefusedError


def _export(home: Path, *arguments: str) -> Result:
    arguments = ("export", "digits", *arguments, "--home", str(home))
    return CliRunner().invoke(commands, arguments, standalone_mode=False)


def test_every_epoch_of_every_run_is_a_row_in_both_formats(tmp_path: Path) -> None:
    train(tmp_path, "digits", but=("midpoint", 1))
    assert _export(tmp_path).return_value == 0
    assert _export(tmp_path, "--out", str(tmp_path / "epochs.csv")).return_value == 0
    frame = pd.read_parquet(tmp_path / "exports" / "digits.parquet")
    assert len(frame) == 5 * 3
    for row in frame.to_dict("records"):
        place = ["erm", "midpoint", "uniform"].index(row["arm"])
        assert row["test/error"] == error_of(place, row["seed"], row["epoch"] - 1)
        assert row["seconds"] == row["epoch"]
    assert set(frame["config.mix.law"]) == {"erm", "midpoint", "beta"}
    assert not frame.duplicated(["run_key", "epoch"]).any()
    csv = pd.read_csv(tmp_path / "epochs.csv")
    pd.testing.assert_frame_equal(csv, frame, check_dtype=False)


def test_nothing_stored_is_said_and_another_format_refused(tmp_path: Path) -> None:
    said = _export(tmp_path)
    assert said.return_value == 1
    assert "no epoch is stored yet" in said.stderr
    assert not (tmp_path / "exports").exists()
    refused = _export(tmp_path, "--out", "epochs.xlsx")
    assert isinstance(refused.exception, RefusedError)
    with pytest.raises(RefusedError, match=r"--out ends in \.parquet or \.csv"):
        raise refused.exception
