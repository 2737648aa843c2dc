"""The whole way of a user: study file, plan, runs, MLflow, table, second launch."""

import csv

import pytest

from sweeps.machine.home import Home
from tests.conftest import CommandLine, CommandLines
from tests.tracked_runs import read_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def finished(command_line: CommandLines) -> CommandLine:
    """Return a home in which the digits study was run once, and check the output."""
    mixsweep = command_line()
    before = mixsweep.json("plan", "digits")
    assert not mixsweep.home.exists(), "plan touches nothing"
    assert (before["runs"], before["stored"], before["to_run"]) == (6, 0, 6)
    said = mixsweep("run", "digits", "--slots", "2")
    assert said.stdout.count("2/2") == 3
    assert "report.html" in said.stderr
    return mixsweep


def test_a_launch_writes_the_report_of_its_study(finished: CommandLine) -> None:
    folder = finished.home / "reports" / "digits"
    assert (folder / "report.html").is_file()
    assert (folder / "tables" / "calibration.csv").is_file(), "predictions are stored"
    assert {path.suffix for path in (folder / "figures").iterdir()} >= {".png", ".svg", ".csv"}
    rows = list(csv.DictReader(finished.report("digits", "runs.csv").decode().splitlines()))
    assert [(row["arm"], row["seed"]) for row in rows] == [
        (arm, seed) for seed in "01" for arm in ("erm", "midpoint", "uniform")
    ] or len(rows) == 6
    assert all(0 < float(row["test/error"]) < 1 for row in rows)
    assert len({row["run_key"] for row in rows}) == 6


def test_mlflow_is_rebuilt_from_the_store_alone(finished: CommandLine) -> None:
    tracked = Home(folder=finished.home).tracking_uri
    before = read_runs(tracked, "digits")
    assert [run.outcome for run in before] == ["complete"] * 6
    (finished.home / "mlflow.db").unlink()
    finished("sync", "digits")
    assert read_runs(tracked, "digits") == before
