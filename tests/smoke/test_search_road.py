"""A search as a user runs it, killed and launched again."""

import random
import signal
import time
from collections import Counter

import optuna
import pytest

from mixup_core.store.checkpoints import Store
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.searching.search_history import read_history
from sweeps.study.search import Point
from tests.conftest import CommandLine, CommandLines
from tests.tracked_runs import read_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = 5
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


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("study") / "small.yaml"
    path.write_text(STUDY)
    return str(path)


@pytest.fixture(scope="module")
def undisturbed(command_line: CommandLines, file: str) -> CommandLine:
    mixsweep = command_line()
    before = mixsweep.json("plan", file)
    assert (before["runs"], before["to_run"]) == (RUNS, RUNS)
    assert before["search"]["adaptive"] is True
    assert not mixsweep.home.exists(), "plan touches nothing"
    said = mixsweep("run", file, "--slots", "1")
    assert "points tried" in said.stdout
    return mixsweep


def points_of(mixsweep: CommandLine, file: str) -> tuple[Point, ...]:
    return read_history(load_study(file), Home(folder=mixsweep.home).optuna_url).points


def test_a_search_ends_with_a_confirmed_winner_and_its_report(
    undisturbed: CommandLine, file: str
) -> None:
    folder = undisturbed.home / "reports" / "small-search"
    tables = {path.name for path in (folder / "tables").iterdir()}
    assert {"points.csv", "confirmed.csv"} <= tables
    assert (folder / "figures" / "search_map.svg").is_file()
    status = undisturbed.json("status", file)
    assert status["points"] == {"expected": 6, "asked": 6, "finished": 6}
    after = undisturbed.json("plan", file)
    assert (after["to_run"], after["epochs_planned"]) == (0, 0)
    assert "0 open" in undisturbed("run", file).stderr


def test_mlflow_has_a_parent_per_point_with_its_mean_and_a_child_per_seed(
    undisturbed: CommandLine, file: str
) -> None:
    tracked = read_runs(Home(folder=undisturbed.home).tracking_uri, "small-search")
    assert Counter(run.outcome for run in tracked) == {"complete": RUNS}
    by_arm = Counter(run.arm for run in tracked)
    assert all(by_arm[point.arm] == 2 for point in points_of(undisturbed, file))
    assert len({run.run_key for run in tracked}) == RUNS


@pytest.mark.long
def test_a_search_killed_five_times_gives_the_same_points_and_report(
    undisturbed: CommandLine, command_line: CommandLines, file: str
) -> None:
    mixsweep = command_line()
    rng = random.Random(1)
    kills, store = 0, Store(str(mixsweep.home / "store"))
    for goal in sorted(rng.sample(range(1, RUNS - 1), KILLS)):
        process = mixsweep.start("run", file, "--slots", "1")
        while process.poll() is None and len(store.keys()) < goal:
            time.sleep(0.02)
        time.sleep(rng.random() * 0.4)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills == KILLS
    mixsweep("run", file, "--slots", "1")
    assert points_of(mixsweep, file) == points_of(undisturbed, file)
    url = Home(folder=mixsweep.home).optuna_url
    (name,) = optuna.get_all_study_names(url)
    states = Counter(t.state.name for t in optuna.load_study(study_name=name, storage=url).trials)
    assert states == {"COMPLETE": 6}
    for kept in ("runs.csv", "tables/points.csv", "table.csv", "tables/confirmed.csv"):
        assert mixsweep.report("small-search", kept) == undisturbed.report("small-search", kept)
    tracked = read_runs(Home(folder=mixsweep.home).tracking_uri, "small-search")
    assert len({run.run_key for run in tracked}) == len(tracked) == RUNS
