"""Runs that fail because of their own errors, or because the disk fails."""

import subprocess
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

DIVERGING = Task(str(Path(__file__).with_name("diverging.yaml")))


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
