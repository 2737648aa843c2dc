import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.files import Bucket
from mixup_core.store.json_records import name_once
from sweeps.leasing.claims import Claims, unused
from sweeps.leasing.lease import Lease

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


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


@pytest.fixture(params=["folder", "moto"])
def any_store(request: pytest.FixtureRequest, store: Store) -> Store:
    """Return a store in a folder, and one in a bucket of an S3 server."""
    if request.param == "folder":
        return store
    request.getfixturevalue("client_of")(request.param)
    return Store(f"s3://studies/{uuid.uuid4().hex}")


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


def test_the_claims_of_a_dead_driver_are_ignored_and_removed(store: Store, tmp_path: Path) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.takes(KEYS[0])
    assert not second.takes(KEYS[0])
    first.lease.release()
    Driver(store, "a")  # the next driver of the same study
    assert second.takes(KEYS[0], after=20)
    assert claims_in(store) == [f"claims/{KEYS[0]}/b.1"]
    second.claims.close()
    assert list((tmp_path / "claims").iterdir()) == []


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
    store: Store, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(store, "a")
    driver.claims.use(KEYS[:1])
    name_once.cache_clear()
    (tmp_path / "uses" / "a.json").write_bytes(content)
    assert unused(store, KEYS, []) == ()
    assert "uses/a.json: " in caplog.text
    driver.lease.release()
    assert unused(store, KEYS, []) == tuple(KEYS)


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_claims_hold_while_their_driver_runs_although_its_lease_is_damaged(
    store: Store, tmp_path: Path, damage: str
) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.takes(KEYS[0])
    record = tmp_path / "leases" / "a.json"
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
