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
    ("notes", "killed", "twice", "lost", "passed"),
    [
        ([(A, "joined", []), (A, "trained", ["1", "2"]), (B, "joined", [])], (), 0, 0, 1),
        ([(A, "joined", []), (B, "joined", []), (A, "trained", ["1", "2"])], (), 1, 0, 0),
        ([(A, "joined", []), (A, "trained", ["1", "2"]), (B, "joined", ["1"])], (), 1, 0, 0),
        ([(A, "joined", []), (A, "trained", ["1", "2"]), (B, "joined", ["2"])], (), 1, 0, 0),
        ([(A, "joined", []), (A, "trained", ["1", "2"]), (B, "joined", ["3"])], (), 0, 0, 1),
        ([(A, "joined", []), (B, "joined", []), (A, "trained", ["1", "2"])], (A,), 0, 1, 0),
    ],
    ids=["late", "together", "a state there", "a state behind", "a state elsewhere", "killed"],
)
def test_a_retrained_epoch_is_classified_by_the_states_the_later_launch_could_use(
    tmp_path: Path,
    notes: list[tuple[str, str, list[str]]],
    killed: tuple[str, ...],
    twice: int,
    lost: int,
    passed: int,
) -> None:
    counted = _counted(tmp_path, *notes, (B, "trained", ["1", "2"]), killed=killed)
    assert (len(counted.twice), counted.lost, counted.passed) == (twice, lost, passed)
    assert (counted.trained, counted.distinct) == (2, 1)
