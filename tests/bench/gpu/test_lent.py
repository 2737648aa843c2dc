"""The script for a lent GPU, on a CPU, as two loans."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


def _loan(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.bench.gpu.lent", "digits", "--seconds", "200"]
    command += ["--home", str(folder / "home"), "--out", str(folder / "out"), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_a_second_loan_trains_only_the_runs_left_by_the_first(tmp_path: Path) -> None:
    first = _loan(tmp_path / "first")
    assert first.returncode == 0, first.stderr
    assert "6 of 6 runs" in first.stdout
    table = (tmp_path / "first" / "out" / "digits.txt").read_text()
    assert "uniform" in table
    assert "torch" in table.splitlines()[-1]
    assert "6 runs to train" in first.stderr
    second = _loan(tmp_path / "second", "--records", str(tmp_path / "first" / "out"))
    assert second.returncode == 0, second.stderr
    assert "6 of 6 runs" in second.stdout
    assert second.stderr.count("6 runs are stored, nothing to train") == 2
