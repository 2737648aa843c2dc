"""BucketLease: one driver per study in a bucket, with real processes and a real server."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing import bucket_lease
from sweeps.leasing.holders import RunningRun, StudyBusyError
from sweeps.leasing.lease import Lease, read_progress
from tests.faults.launches import wait_for
from tests.interpreters import start_python

DRIVER = """
import os, sys, time
from mixup_core.store.checkpoints import Store
from sweeps.leasing import bucket_lease
from sweeps.leasing.holders import RunningRun, StudyLostError
from sweeps.leasing.lease import Lease
from sweeps.machine.signals import hear
bucket_lease._BEAT_EVERY, bucket_lease._BELIEF = 0.2, 1.0
hear()  # as the command line does
try:
    with Lease.acquire(Store(sys.argv[1]), "table1", "mixsweep run table1") as lease:
        lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])
        print("held", flush=True)
        while True:
            time.sleep(0.05)
            asked_at = time.monotonic()
            print(asked_at, lease.is_held(), flush=True)
except StudyLostError as error:
    print(error, flush=True)
    # The exit of an interpreter that has loaded s3fs takes most of the time on a busy machine.
    os._exit(0)
"""


@pytest.fixture
def store(s3: Mapping[str, str], request: pytest.FixtureRequest) -> Store:
    return Store(f"s3://studies/{abs(hash(request.node.name))}")


@pytest.fixture
def driver(store: Store) -> Iterator["subprocess.Popen[str]"]:
    process = start_python(DRIVER, store.url, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "held\n", process.communicate()
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process take a driver for dead after two seconds."""
    monkeypatch.setattr(bucket_lease, "_EXPIRY", 2.0)
    monkeypatch.setattr(bucket_lease, "_SILENCE", 2.0)


def test_a_driver_killed_on_another_machine_frees_its_study_after_a_timeout(
    store: Store,
    driver: "subprocess.Popen[str]",
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bucket_lease, "_namespace", lambda: "another machine")
    driver.kill()
    driver.wait()
    started = time.monotonic()
    with Lease.acquire(store, "table1", "next") as lease:
        assert lease.token == 2
    assert time.monotonic() - started >= 2.0


def test_a_paused_driver_ends_when_another_driver_has_taken_its_lease(
    store: Store, driver: "subprocess.Popen[str]", quick: None
) -> None:
    assert driver.stdout.readline().endswith("True\n")
    driver.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, driver.pid, os.WSTOPPED)
    with Lease.acquire(store, "table1", "next") as lease:
        woken_at = time.monotonic()
        driver.send_signal(signal.SIGCONT)
        *asked, end = driver.communicate(timeout=40)[0].splitlines()
        assert f"was taken over by pid {os.getpid()} on " in end
        believed_at = [float(line.split()[0]) for line in asked if line.endswith("True")]
        assert all(moment < woken_at for moment in believed_at), "it believed after its sleep"
        assert lease.is_held()
        assert Lease.current(store, "table1") == lease.holder


def test_one_of_several_simultaneous_drivers_gets_the_lease(store: Store) -> None:
    def start(_: int) -> Lease | None:
        try:
            return Lease.acquire(store, "table1", "run")
        except StudyBusyError:
            return None

    with ThreadPoolExecutor(6) as pool:
        (held,) = filter(None, pool.map(start, range(6)))
    held.release()


def test_a_lease_that_cannot_be_renewed_is_not_held_until_its_next_renewal(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_lease, "_BEAT_EVERY", 0.1)
    monkeypatch.setattr(bucket_lease, "_BELIEF", 1.0)
    lease = Lease.acquire(store, "table1", "run")
    wait_for(lease.is_held)
    with monkeypatch.context() as patch:
        patch.setattr(type(store.files), "write", Mock(side_effect=StoreError("unreachable")))
        wait_for(lambda: not lease.is_held())
    wait_for(lease.is_held)
    lease.release()


def test_a_lease_is_released_if_the_bucket_does_not_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test hangs if the release waits for the answer."""
    monkeypatch.setattr(bucket_lease, "_TO_RELEASE", 0.1)
    answers = threading.Event()
    lease = Lease.acquire(store, "table1", "run")
    with monkeypatch.context() as patch:
        patch.setattr(type(store.files), "write", lambda *_: answers.wait())
        lease.release()
        assert not lease.is_held()
        answers.set()


GARBAGE = (b"\xff\x00", b'{"token": "x", "pid": {}}')


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_damaged_released_lease_can_be_acquired_with_a_larger_token(
    store: Store, garbage: bytes, quick: None
) -> None:
    for drivers in (1, 2):
        with Lease.acquire(store, "table1", "run") as lease:
            assert lease.token == drivers
    store.files.write("leases/table1/2.json", garbage)
    assert Lease.current(store, "table1") is None
    assert Lease.latest(store, "table1") is None
    with Lease.acquire(store, "table1", "next") as lease:
        assert lease.token == 3
    store.files.write("leases/table1/3.beat", garbage)
    assert read_progress(store, "table1") is None
    store.files.remove("leases/table1/3.json")
    with Lease.acquire(store, "table1", "next") as lease:
        assert lease.token == 4


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_running_driver_keeps_its_study_although_its_lease_is_damaged(
    store: Store, driver: "subprocess.Popen[str]", garbage: bytes, quick: None
) -> None:
    for name in ("1.json", "1.beat"):
        store.files.write(f"leases/table1/{name}", garbage)
    with pytest.raises(StudyBusyError, match="already run by another process"):
        Lease.acquire(store, "table1", "second")
    shown: Any = None
    for _ in range(20):
        shown = shown or read_progress(store, "table1")
    assert shown.running == (RunningRun(arm="erm", seed=0, epoch=7),)


def test_a_server_that_ignores_conditional_writes_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(files: Any, name: str, data: bytes) -> bool:
        files.write(name, data)
        return True

    monkeypatch.setattr(type(store.files), "create", create)
    with pytest.raises(StoreError, match="ignores `If-None-Match`"):
        Lease.acquire(store, "table1", "run")


def test_a_store_without_atomic_creation_is_refused() -> None:
    with pytest.raises(StoreError, match="cannot guarantee that only one driver trains a study"):
        Lease.acquire(Store("http://127.0.0.1:9/store"), "table1", "run")
