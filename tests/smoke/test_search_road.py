"""A search as a user runs it."""

from pathlib import Path

import pytest

from sweeps.machine.home import Home
from tests.conftest import CommandLines
from tests.tracked_runs import read_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STUDY = Path(__file__).parents[1] / "faults/small-search.yaml"
RUNS = 2 * 2 + 6 * 2 + 3 * 2


def test_a_search_ends_with_a_confirmed_winner_and_its_report(command_line: CommandLines) -> None:
    mixsweep, file = command_line(), str(STUDY)
    before = mixsweep.json("plan", file)
    assert (before["runs"], before["to_run"]) == (RUNS, RUNS)
    assert before["search"]["adaptive"] is True
    assert not mixsweep.home.exists(), "plan touches nothing"
    said = mixsweep("run", file, "--slots", "1")
    assert "points tried" in said.stdout
    folder = mixsweep.home / "reports" / "small-search"
    tables = {path.name for path in (folder / "tables").iterdir()}
    assert {"points.csv", "confirmed.csv"} <= tables
    assert (folder / "figures" / "search_map.svg").is_file()
    status = mixsweep.json("status", file)
    assert status["points"] == {"expected": 6, "asked": 6, "finished": 6}
    after = mixsweep.json("plan", file)
    assert (after["to_run"], after["epochs_planned"]) == (0, 0)
    assert "0 open" in mixsweep("run", file).stderr
    tracked = read_runs(Home(folder=mixsweep.home).tracking_uri, "small-search")
    assert [run.outcome for run in tracked] == ["complete"] * RUNS
