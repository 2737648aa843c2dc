"""Runs that fail because of their own errors."""

from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from tests.conftest import CommandLines
from tests.faults.launches import Launch, Task

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
