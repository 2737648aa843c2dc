"""The whole way of a user: study file, plan, runs, report."""

import csv

import pytest

from tests.conftest import CommandLines


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_launch_writes_the_report_of_its_study(command_line: CommandLines) -> None:
    mixsweep = command_line()
    before = mixsweep.json("plan", "digits")
    assert not mixsweep.home.exists(), "plan touches nothing"
    assert (before["runs"], before["stored"], before["to_run"]) == (6, 0, 6)
    said = mixsweep("run", "digits", "--slots", "2")
    assert said.stdout.count("2/2") == 3
    assert "report.html" in said.stderr
    folder = mixsweep.home / "reports" / "digits"
    assert (folder / "report.html").is_file()
    assert (folder / "tables" / "calibration.csv").is_file(), "predictions are stored"
    assert {path.suffix for path in (folder / "figures").iterdir()} >= {".png", ".svg", ".csv"}
    rows = list(csv.DictReader(mixsweep.report("digits", "runs.csv").decode().splitlines()))
    assert all(0 < float(row["test/error"]) < 1 for row in rows)
    assert len({row["run_key"] for row in rows}) == len(rows) == 6
    after = mixsweep.json("plan", "digits")
    assert (after["stored"], after["to_run"], after["epochs_planned"]) == (6, 0, 0)
