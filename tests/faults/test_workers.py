"""Workers that die, and what happens to the runs they were training."""

import os
import resource
import tempfile
from pathlib import Path

import psutil
import pytest
import torch

from mixup_core.images.data.datasets import load
from mixup_core.images.training import fit
from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost, assert_tracked
from tests.faults.launches import TWO_LAWS, Launch, Task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

_FOR_THREADS = 32 * 2**20
"""Bytes that a worker may still allocate: enough for the threads of Ray, which starts them by
`Thread.start`, and too little for the wide network."""


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
def test_a_worker_out_of_memory_is_retried_with_unchanged_results(
    command_line: CommandLines,
) -> None:
    mixsweep = command_line()
    task = Task(str(Path(__file__).with_name("narrow-and-wide.yaml")))
    with Launch(mixsweep, task, "--slots", "1") as launch:
        pid = launch.worker(task.study.runs()[0])
        present = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        limit = present * os.sysconf("SC_PAGE_SIZE") + _FOR_THREADS
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
        assert "wide seed 0 is tried again" in launch.end(0).stderr
    results = task.results(launch.store)
    torch.set_num_threads(1)
    for result in results:
        config = result.run.config
        assert list(result.records) == list(fit(config, load(config.data, mixsweep.data)))
    assert_tracked(results, mixsweep.home / "mlflow.db")


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
