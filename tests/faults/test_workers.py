"""Workers that die, and what becomes of the runs they trained."""

import os
import pathlib
import resource
from collections.abc import Callable

import pytest

from tests.conftest import CommandLine
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


@pytest.mark.long
def test_killed_workers_lose_no_stored_epoch(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    runs = TWO_LAWS.study.runs()
    acknowledged = {}
    with Launch(mixsweep, TWO_LAWS) as launch:
        for run, epochs in ((runs[0], 1), (runs[1], 10), (runs[2], 25)):
            pid = launch.worker(run, epochs=epochs)
            seen = TWO_LAWS.acknowledged(launch.store)
            launch.kill_worker(pid)
            acknowledged |= {key: facts for key, facts in seen.items() if facts}
        assert launch.end(0).stderr.count("is tried again") == 3
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)


@pytest.mark.long
def test_a_worker_out_of_memory_costs_one_try_and_no_result(
    command_line: Callable[..., CommandLine], undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    with Launch(mixsweep, TWO_LAWS) as launch:
        pid = launch.worker(TWO_LAWS.study.runs()[0], epochs=5)
        with pathlib.Path(f"/proc/{pid}/statm").open() as statm:
            present = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.prlimit(pid, resource.RLIMIT_AS, (present, present))
        assert "is tried again" in launch.end(0).stderr
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed)
