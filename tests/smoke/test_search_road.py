"""A search as a user runs it."""

from pathlib import Path

import pytest

from sweeps.machine.home import Home
from tests.conftest import CommandLines
from tests.tracked_runs import read_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STUDY = """
study: small-search
base:
  data: {name: digits, val_size: 300}
  model: {name: mlp}
  epochs: 10
  batch_size: 64
  eval_every: 10
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
seeds: 2
search:
  space:
    mix.law: {beta: {log_uniform: [0.1, 32.0]}}
    mix.switch_epoch: {int: [0, 10]}
  points: 6
  objective: val/error
  confirm: {seeds: [100, 101]}
"""
RUNS = 2 * 2 + 6 * 2 + 3 * 2


def test_a_search_ends_with_a_confirmed_winner_and_its_report(
    command_line: CommandLines, tmp_path: Path
) -> None:
    mixsweep, file = command_line(), str(tmp_path / "small.yaml")
    Path(file).write_text(STUDY)
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
