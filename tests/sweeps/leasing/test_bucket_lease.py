"""BucketLease: one driver per study in a bucket, with real processes and a real server."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing import bucket_lease
from sweeps.leasing.holders import (
    BUSY,
    Holder,
    RunningRun,
    StudyBusyError,
    StudyLostError,
)
from sweeps.leasing.lease import Lease, read_progress
from tests.object_stores import forget_clients
from tests.races import drive, race
from tests.sweeps.leasing.latest_drivers import assert_the_latest_driver_is_known

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

WITHIN_RAY = """
import ctypes, sys
from pathlib import Path
from mixup_core.store.checkpoints import Store
from sweeps.leasing import bucket_lease
from sweeps.leasing.lease import Lease
from sweeps.machine.signals import hear
from sweeps.running import head
bucket_lease._BEAT_EVERY = 0.2
hear()
lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
lease = Lease.acquire(Store(sys.argv[1]), "table1", "mixsweep run table1")
with lease, head.starting(Path("/nowhere")):
    print("held", flush=True)
    lock(mutex)
    lock(mutex)  # for ever, and no handler is called meanwhile
"""


@pytest.fixture
def store(s3: Mapping[str, str], request: pytest.FixtureRequest) -> Store:
    return Store(f"s3://studies/{abs(hash(request.node.name))}")


@pytest.fixture
def driver(store: Store) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, store.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n", process.communicate()
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process take a driver for dead after two seconds."""
    monkeypatch.setattr(bucket_lease, "_EXPIRY", 2.0)
    monkeypatch.setattr(bucket_lease, "_SILENCE", 2.0)


def test_the_latest_driver_is_known_during_its_lease_and_after_its_end(store: Store) -> None:
    assert_the_latest_driver_is_known(store)


def test_a_second_driver_is_refused_with_the_running_driver(
    store: Store, driver: "subprocess.Popen[str]"
) -> None:
    with pytest.raises(StudyBusyError, match=rf"pid {driver.pid} on .* \(token 1\)"):
        Lease.acquire(store, "table1", "second")
    holder = Lease.current(store, "table1")
    assert holder is not None
    assert (holder.pid, holder.command) == (driver.pid, "mixsweep run table1")
    with Lease.acquire(store, "table2", "another study"):
        pass


def test_progress_is_read_as_last_written_by_the_driver(
    store: Store, driver: "subprocess.Popen[str]"
) -> None:
    shown: Any = None
    for _ in range(20):
        shown = shown or read_progress(store, "table1")
    assert shown.running == (RunningRun(arm="erm", seed=0, epoch=7),)


def test_a_driver_killed_on_this_machine_frees_its_study_immediately(
    store: Store, driver: "subprocess.Popen[str]"
) -> None:
    driver.kill()
    driver.wait()
    with Lease.acquire(store, "table1", "next") as lease:
        assert lease.token == 2
        assert lease.is_held()


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
    assert driver.stdout is not None
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


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_taken_over_driver_that_waits_within_ray_ends_with_its_own_message(
    store: Store, is_damaged: bool
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WITHIN_RAY, store.url], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n", process.communicate()
            record = b"" if is_damaged else json.dumps(asdict(Holder.here(2, "next"))).encode()
            store.files.write("leases/table1/2.json", record)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    by = "another process" if is_damaged else rf"pid {os.getpid()} on .*"
    last = said.splitlines()[-1]
    assert re.fullmatch(f"study 'table1' was taken over by {by}; this driver stops", last)
    assert process.returncode == BUSY


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_lease_that_is_lost_raises_its_own_error(
    store: Store, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    told = threading.Event()
    monkeypatch.setattr(bucket_lease, "_BEAT_EVERY", 0.1)
    monkeypatch.setattr(bucket_lease, "interrupt_main_thread", lambda ending: told.set())
    lease = Lease.acquire(store, "table1", "first")
    record = b"" if is_damaged else json.dumps(asdict(Holder.here(2, "next"))).encode()
    store.files.write("leases/table1/2.json", record)

    def hold() -> None:
        with lease:
            assert told.wait(30)
            assert not lease.is_held()

    with pytest.raises(StudyLostError, match="was taken over by"):
        hold()


def test_tokens_increase_and_a_released_lease_is_free_immediately(store: Store) -> None:
    tokens = []
    for _ in range(3):
        with Lease.acquire(store, "table1", "run") as lease:
            tokens.append(lease.token)
        assert not lease.is_held()
        assert Lease.current(store, "table1") is None
    assert tokens == [1, 2, 3]


def test_one_of_several_simultaneous_drivers_gets_the_lease(store: Store) -> None:
    barrier = threading.Barrier(6)
    held: list[Lease] = []
    busy: list[StudyBusyError] = []

    def start() -> None:
        barrier.wait()
        try:
            held.append(Lease.acquire(store, "table1", "run"))
        except StudyBusyError as error:
            busy.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(busy)) == (1, 5)
    held[0].release()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_one_of_several_racing_processes_gets_the_lease_in_every_round(store: Store) -> None:
    held = race(drive, store.url, racers=4, rounds=100)
    assert [sum(got) for got in held] == [1] * 100
    assert len({got.index(True) for got in held}) > 1, "one racer was always first: no race"


def test_a_lease_that_cannot_be_renewed_is_not_held_until_its_next_renewal(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_lease, "_BEAT_EVERY", 0.1)
    monkeypatch.setattr(bucket_lease, "_BELIEF", 0.5)

    def fail(*_: object) -> None:
        raise StoreError("unreachable")

    lease = Lease.acquire(store, "table1", "run")
    assert lease.is_held()
    with monkeypatch.context() as patch:
        patch.setattr(type(store.files), "write", fail)
        time.sleep(0.8)
        assert not lease.is_held()
    time.sleep(0.5)
    assert lease.is_held()
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


GARBAGE = (b"", b"\xff\x00", b"[1]", b'{"token": 1', b'{"token": "x", "pid": {}}')


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


def test_unrelated_objects_and_fields_of_a_later_version_are_ignored(store: Store) -> None:
    for name in ("notes.json", "x7.json", "7.json.bak"):
        store.files.write(f"leases/table1/{name}", b"{}")
    with Lease.acquire(store, "table1", "run") as lease:
        assert lease.token == 1
        record = json.loads(store.files.read("leases/table1/1.json"))
        added = json.dumps({**record, "cluster": {"nodes": 3}}).encode()
        store.files.write("leases/table1/1.json", added)
        assert Lease.latest(store, "table1") == lease.holder


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


def test_a_query_for_the_driver_creates_no_file(store: Store) -> None:
    assert Lease.current(store, "table1") is None
    assert read_progress(store, "table1") is None
    assert list(store.files.names("")) == []


@pytest.mark.parametrize("study", ["", "../x", "a/b", "Table1"])
def test_an_invalid_study_name_is_refused(store: Store, study: str) -> None:
    for use in (Lease.current, read_progress):
        with pytest.raises(ValueError, match="a-z, 0-9 and -"):
            use(store, study)


@pytest.mark.parametrize(
    ("changes", "url", "text"),
    [
        ({}, "s3://no-such-bucket/store", "no such bucket"),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"},
            "s3://studies/a",
            "127.0.0.1:9",
        ),
    ],
)
def test_a_missing_bucket_is_reported_in_one_line(
    s3: Mapping[str, str], changes: Mapping[str, str], url: str, text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    forget_clients()
    use: Callable[[], object] = lambda: Lease.acquire(Store(url), "table1", "run")  # noqa: E731
    with pytest.raises(StoreError, match=text) as caught:
        use()
    forget_clients()
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, StudyLostError)
