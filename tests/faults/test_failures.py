"""Runs that fail because of their own errors, or because the disk fails."""

import subprocess
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.searching.search_history import read_history
from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

DIVERGING = Task(str(Path(__file__).with_name("diverging.yaml")))
SEARCH = """
study: diverging-points
base:
  data: {name: digits, val_size: 300}
  model: {name: mlp}
  epochs: 2
  batch_size: 128
  optimizer: {name: sgd, lr: 0.001, weight_decay: 1000}
arms:
  erm: {mix.law: erm}
seeds: 3
search:
  space:
    optimizer.lr: {categorical: [0.0001, 1000.0]}
  sampler: grid
  objective: val/error
  prune: {after: 2}
"""


def test_a_run_that_diverges_is_reported_and_never_retried(
    command_line: CommandLines,
) -> None:
    mixsweep = command_line()
    with Launch(mixsweep, DIVERGING) as launch:
        said = launch.end(1).stderr
    for seed in DIVERGING.study.seeds:
        assert f"hot seed {seed} diverged: training loss must be finite, got (loss=" in said
    assert "epoch=0" in said
    arms = mixsweep.json("status", DIVERGING.file)["arms"]
    assert arms["erm"] == {"expected": 2, "finished": 2, "running": 0, "failed": 0}
    assert arms["hot"] == {"expected": 2, "finished": 0, "running": 0, "failed": 2}
    failures = Store(str(launch.store)).failures.read_all()
    assert {(failure.kind, failure.attempts) for failure in failures.values()} == {("diverged", 1)}
    with Launch(mixsweep, DIVERGING) as launch:
        assert "hot seed 1 diverged" in launch.end(1).stderr
    assert Store(str(launch.store)).failures.read_all() == failures


@pytest.mark.long
def test_a_point_with_diverging_seeds_fails_and_the_search_continues(
    command_line: CommandLines, tmp_path: Path
) -> None:
    file = tmp_path / "search.yaml"
    file.write_text(SEARCH)
    mixsweep = command_line()
    with Launch(mixsweep, Task(str(file)), "--slots", "1") as launch:
        launch.end(1)
    points = read_history(load_study(str(file)), Home(folder=mixsweep.home).optuna_url).points
    assert sorted((point.values["optimizer.lr"], point.state) for point in points) == [
        (1e-4, "complete"),
        (1e3, "failed"),
    ]
    failures = Store(str(launch.store)).failures.read_all()
    assert len(failures) == 2, "the seeds that are compared first are enough to fail a point"
    with Launch(mixsweep, Task(str(file)), "--slots", "1") as launch:
        said = launch.end(1).stderr
    assert "2 evaluated, 0 open; 6 runs stored" in said
    assert " starts" not in said


@pytest.mark.long
def test_a_full_disk_is_reported_and_a_launch_with_free_space_loses_no_results(
    command_line: CommandLines, undisturbed: CommandLine, tmp_path: Path
) -> None:
    mixsweep, disk = command_line(), tmp_path / "disk"  # the mount ends with the namespace
    disk.mkdir()
    store = ("--store", str(disk))
    _mount(disk, "size=3m")
    with Launch(mixsweep, TWO_LAWS, *store) as launch:
        assert "disk full" in launch.end(1).stderr
    acknowledged = TWO_LAWS.acknowledged(disk)
    assert any(acknowledged.values()), "full before anything was stored"
    _mount(disk, "remount,size=64m")
    with Launch(mixsweep, TWO_LAWS, *store) as launch:
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged, store=disk)


def _mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
