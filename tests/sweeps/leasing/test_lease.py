"""Lease: one driver per study, with real processes that are killed and stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.leasing.holders import RunningRun, StudyBusyError
from sweeps.leasing.lease import Lease, read_progress
from tests.sweeps.leasing.latest_drivers import assert_the_latest_driver_is_known

DRIVER = """
import subprocess, sys, time
from mixup_core.store.checkpoints import Store
from sweeps.leasing.holders import RunningRun
from sweeps.leasing.lease import Lease
lease = Lease.acquire(Store(sys.argv[1]), "table1", "mixsweep run table1")
lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
grandchild = subprocess.Popen(sleep, close_fds=False)
print(grandchild.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def driver(store: Store) -> Iterator[subprocess.Popen[str]]:
    """Process that holds the lease of `table1`, in a process group with its child."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, store.url],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def grandchild_of(driver: subprocess.Popen[str]) -> int:
    """Wait until the driver holds its lease; return the pid of its child."""
    stream: IO[str] | None = driver.stdout
    assert stream is not None
    return int(stream.readline())


def test_the_latest_driver_is_known_during_its_lease_and_after_its_end(store: Store) -> None:
    assert_the_latest_driver_is_known(store)


def test_a_second_driver_is_refused_with_the_pid_of_the_first(
    store: Store, driver: subprocess.Popen[str]
) -> None:
    grandchild_of(driver)
    started = time.monotonic()
    with pytest.raises(StudyBusyError) as caught:
        Lease.acquire(store, "table1", "second")
    assert time.monotonic() - started < 5
    holder = caught.value.holder
    assert holder is not None
    since = datetime.fromtimestamp(holder.started_at_ms / 1000).strftime("%H:%M")
    assert str(caught.value) == (
        f"study 'table1' is already run by pid {driver.pid} on {os.uname().nodename} since {since} "
        "(token 1); wait until it ends, or run `mixsweep stop table1`"
    )
    with Lease.acquire(store, "table2", "another study"):
        pass


def test_a_killed_driver_frees_its_study_although_its_child_still_runs(
    store: Store, driver: subprocess.Popen[str]
) -> None:
    grandchild = grandchild_of(driver)
    assert read_progress(store, "table1") is not None
    driver.kill()
    driver.wait()
    os.kill(grandchild, 0)
    assert Lease.current(store, "table1") is None
    assert read_progress(store, "table1") is None
    started = time.monotonic()
    with Lease.acquire(store, "table1", "next") as lease:
        assert time.monotonic() - started < 0.4
        assert lease.token == 2
        assert read_progress(store, "table1") is None


def test_progress_is_read_as_last_written_during_the_lease(store: Store) -> None:
    running = (RunningRun(arm="erm", seed=0, epoch=7), RunningRun(arm="midpoint", seed=1, epoch=0))
    with Lease.acquire(store, "table1", "run") as lease:
        assert read_progress(store, "table1") is None
        lease.write_progress(running[:1])
        lease.write_progress(running)
        progress = read_progress(store, "table1")
        assert progress is not None
        assert (progress.token, progress.running) == (lease.token, running)
        assert abs(progress.updated_at_ms / 1000 - time.time()) < 30
    assert read_progress(store, "table1") is None
