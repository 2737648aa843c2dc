"""Lease: one driver per study, with real processes that are killed and stopped."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from mixup_core.rules import spell_time
from mixup_core.store.checkpoints import Store
from mixup_core.store.files import Bucket
from mixup_core.store.json_records import name_once
from sweeps.leasing.holders import Holder, StudyBusyError
from sweeps.leasing.lease import Claims, Lease, ask_to_stop, asked_to_stop, read_progress, unused
from tests.interpreters import start_python

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
def driver(any_store: Store) -> Iterator[subprocess.Popen[str]]:
    """Process that holds the lease of `table1`, in a process group with its child."""
    process = start_python(DRIVER, any_store.url, start_new_session=True)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def grandchild_of(driver: subprocess.Popen[str]) -> int:
    """Wait until the driver holds its lease; return the pid of its child."""
    return int(driver.stdout.readline())


def test_a_second_driver_is_refused_with_the_pid_of_the_first(
    any_store: Store, driver: subprocess.Popen[str]
) -> None:
    grandchild_of(driver)
    with pytest.raises(StudyBusyError) as caught:
        Lease.acquire(any_store, "table1", "second")
    holder = caught.value.holder
    since = spell_time(holder.started_at_ms)
    assert str(caught.value) == (
        f"study 'table1' is already run by pid {driver.pid} on {os.uname().nodename} since {since} "
        "(token 1); wait until it ends, or run `mixsweep stop table1`"
    )
    holder = Lease.current(any_store, "table1")
    assert (holder.pid, holder.command) == (driver.pid, "mixsweep run table1")
    with Lease.acquire(any_store, "table2", "another study"):
        pass


def test_a_killed_driver_frees_its_study_although_its_child_still_runs(
    any_store: Store, driver: subprocess.Popen[str]
) -> None:
    grandchild = grandchild_of(driver)
    progress = read_progress(any_store, "table1")
    assert Lease.cut_off(any_store, "table1") is None, "it lives"
    driver.kill()
    driver.wait()
    os.kill(grandchild, 0)
    if any_store.folder is not None:
        assert Lease.cut_off(any_store, "table1") == progress
        assert "while it trained erm seed 0 (epoch 7)" in progress.spell_death()
    with Lease.acquire(any_store, "table1", "next") as lease:
        assert lease.token == 2
        assert lease.is_held()
        assert read_progress(any_store, "table1") is None
        lease.write_progress(progress.running)
    assert Lease.cut_off(any_store, "table1") is None, "it released its lease"


STOPPED = Holder.here(3, "mixsweep run digits")


def test_only_the_named_driver_gets_a_stop_request_and_the_last_one_counts(store: Store) -> None:
    assert asked_to_stop(store, "digits", STOPPED) is None
    ask_to_stop(store, "digits", STOPPED, "finish")
    assert asked_to_stop(store, "digits", STOPPED) == "finish"
    assert asked_to_stop(store, "digits", replace(STOPPED, token=4)) is None
    assert asked_to_stop(store, "moons", STOPPED) is None
    ask_to_stop(store, "digits", STOPPED, "now")
    assert asked_to_stop(store, "digits", STOPPED) == "now"


KEYS = [f"{number:032x}"[::-1] for number in range(4)]


class Driver:
    """A driver that is alive until its lease is released."""

    def __init__(self, store: Store, study: str) -> None:
        self.lease = Lease.acquire(store, study, "mixsweep run")
        self.now = 0.0
        self.claims = Claims(
            store=store, study=study, token=self.lease.token, clock=lambda: self.now
        )

    def takes(self, run: str, after: float = 4.0) -> bool:
        self.now += after
        return self.claims.take(run)


@pytest.fixture(params=["folder", "moto"])
def any_store(request: pytest.FixtureRequest, store: Store) -> Store:
    """Return a store in a folder, and one in a bucket of an S3 server."""
    if request.param == "folder":
        return store
    request.getfixturevalue("client_of")(request.param)
    return Store(f"s3://studies/{uuid.uuid4().hex}")


def test_the_latest_driver_is_known_during_its_lease_and_after_its_end(any_store: Store) -> None:
    assert Lease.latest(any_store, "table1") is None
    for command in ("first", "second"):
        with Lease.acquire(any_store, "table1", command) as lease:
            assert Lease.latest(any_store, "table1") == lease.holder
    found = Lease.latest(any_store, "table1")
    assert (found.command, found.token) == ("second", 2)


def claims_in(store: Store) -> list[str]:
    return sorted(store.files.names("claims"))


def test_a_run_is_trained_by_the_first_driver_that_claims_it(any_store: Store) -> None:
    first, second = Driver(any_store, "a"), Driver(any_store, "b")
    assert first.takes(KEYS[0])
    assert not second.takes(KEYS[0])
    assert second.takes(KEYS[1])
    assert first.takes(KEYS[0]), "again, after the process of the run died"
    first.claims.end(KEYS[0])
    assert second.takes(KEYS[0], after=20)
    for driver in (first, second):
        driver.claims.close()
    assert claims_in(any_store) == []


def test_the_claims_of_a_dead_driver_are_ignored_and_removed(store: Store) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.takes(KEYS[0])
    assert not second.takes(KEYS[0])
    first.lease.release()
    Driver(store, "a")  # the next driver of the same study
    assert second.takes(KEYS[0], after=20)
    assert claims_in(store) == [f"claims/{KEYS[0]}.b.1"]
    second.claims.close()
    assert claims_in(store) == []


def test_states_that_a_live_driver_uses_are_not_removed(any_store: Store) -> None:
    first = Driver(any_store, "a")
    first.claims.use(KEYS[:1])
    first.claims.use(KEYS[1:2])
    assert unused(any_store, KEYS, ["b"]) == tuple(KEYS[2:])
    assert unused(any_store, KEYS, ["a"]) == tuple(KEYS), "prune has the lease of this study"
    first.lease.release()
    assert unused(any_store, KEYS, ["b"]) == tuple(KEYS)
    Driver(any_store, "c").claims.use(KEYS[:1])
    first.claims.close()
    assert [*any_store.files.names("uses")] == ["uses/c.json"]


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"token": 1, "stages": 3}'])
def test_a_driver_whose_list_of_used_states_is_damaged_uses_all_while_it_lives(
    store: Store, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(store, "a")
    driver.claims.use(KEYS[:1])
    name_once.cache_clear()
    store.files.write("uses/a.json", content)
    assert unused(store, KEYS, []) == ()
    assert "uses/a.json: " in caplog.text
    driver.lease.release()
    assert unused(store, KEYS, []) == tuple(KEYS)


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_claims_hold_while_their_driver_runs_although_its_lease_is_damaged(
    store: Store, damage: str
) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.takes(KEYS[0])
    record = store.folder / "leases" / "a.json"
    record.unlink() if damage == "missing" else os.truncate(record, 3)
    assert not second.takes(KEYS[0])


def test_at_most_one_of_several_simultaneous_drivers_trains_a_run(store: Store) -> None:
    drivers = [Driver(store, f"study-{number}") for number in range(4)]
    rounds = [f"{number:032x}" for number in range(25)]
    barrier, won = Barrier(len(drivers)), dict.fromkeys(rounds, 0)

    def race(driver: Driver) -> None:
        for run in rounds:
            barrier.wait()
            for _ in range(3):
                if driver.takes(run):
                    won[run] += 1
                    break

    with ThreadPoolExecutor(len(drivers)) as pool:
        for done in [pool.submit(race, driver) for driver in drivers]:
            done.result(timeout=60)
    assert set(won.values()) <= {0, 1}
    assert sum(won.values()) > 0
    assert not isinstance(store.files, Bucket)
