"""Workers that die, and what happens to the runs they were training."""

import tempfile
from pathlib import Path

import psutil
import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


def test_killed_workers_lose_no_stored_epoch(
    command_line: CommandLines, undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    acknowledged = {}
    with Launch(mixsweep, TWO_LAWS) as launch:
        launch.worker()
        printed = Path(tempfile.gettempdir()).glob("mixsweep-*/ray/session_2*/logs/worker-*.out")
        assert len(list(printed)) == 2  # one a slot: no worker is begun for nothing
        for epochs in (1, 8, 16):
            pid = launch.worker(epochs=epochs)
            seen = TWO_LAWS.acknowledged(launch.store)
            launch.kill_worker(pid)
            acknowledged |= {key: facts for key, facts in seen.items() if facts}
        assert launch.end(0).stderr.count("is tried again") == 3
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)


@pytest.mark.long
def test_a_run_that_ray_kills_for_its_memory_fails_and_the_other_runs_finish(
    command_line: CommandLines,
) -> None:
    memory = psutil.virtual_memory()
    threshold = (memory.total - memory.available + 4e9) / memory.total
    mixsweep = command_line(RAY_memory_usage_threshold=f"{threshold:.3f}")
    file = str(Path(__file__).with_name("narrow-and-wide.yaml"))
    task = Task(file, ("arms.wide.model.hidden=[24000, 24000]",))
    with Launch(mixsweep, task) as launch:
        ended = launch.end(1)
    failed = next(line for line in ended.stderr.splitlines() if "wide seed 0 failed: " in line)
    assert "lacks memory even if it trains alone: Ray killed its process" in failed
    assert "reduce batch_size" in failed
    assert "Traceback" not in ended.stderr
    assert [result.outcome for result in task.results(launch.store)] == ["complete", "failed"]
    assert (mixsweep.home / "reports" / "narrow-and-wide" / "report.html").exists()
    assert "lacks memory even if it trains alone" in mixsweep("status", *task.arguments).stdout
