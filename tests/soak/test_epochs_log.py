"""EpochsLog: epochs that count as trained twice, as lost, and as passed."""

import json
from pathlib import Path

import pytest

from tests.soak.epochs_log import Counted, EpochsLog

A, B = "a", "b"


def _counted(folder: Path, *notes: tuple[str, str, list[str]], killed: tuple[str, ...]) -> Counted:
    lines = (json.dumps({"launch": name, "what": what, "keys": keys}) for name, what, keys in notes)
    (folder / "epochs.jsonl").write_text("\n".join(lines) + "\n")
    return EpochsLog(folder=folder).count(killed)


@pytest.mark.parametrize(
    ("notes", "killed", "twice"),
    [
        ([(A, "trained", ["1"])], (), 1),
        ([(A, "trained", ["1"])], (A,), 0),
        ([(A, "trained", ["1"]), (A, "stored", ["1"])], (A,), 1),
        ([(A, "trained", ["1", "2"])], (), 1),
        ([(A, "trained", ["3"])], (), 0),
    ],
    ids=["again", "lost with a killed launch", "stored before the kill", "shared", "another"],
)
def test_an_epoch_that_two_launches_trained_counts_unless_a_kill_lost_the_first(
    tmp_path: Path, notes: list[tuple[str, str, list[str]]], killed: tuple[str, ...], twice: int
) -> None:
    counted = _counted(tmp_path, *notes, (B, "trained", ["1"]), killed=killed)
    assert (len(counted.twice), counted.trained) == (twice, 2)


def test_a_shared_first_epoch_may_be_trained_twice(tmp_path: Path) -> None:
    notes = [(A, "trained", ["1", "2"]), (B, "trained", ["1", "2"])]
    assert _counted(tmp_path, *notes, killed=()).twice == ()
