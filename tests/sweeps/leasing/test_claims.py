"""Claims on stages: of two live drivers one trains a stage; claims of dead drivers do not count."""

import os
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from mixup_core.store.bucket import Bucket
from mixup_core.store.checkpoints import Store
from sweeps.leasing.claims import Claims, Granted, read_claims
from sweeps.leasing.lease import Lease

KEYS = [f"{number:032x}"[::-1] for number in range(8)]


class Driver:
    """A driver that is alive until its lease is released."""

    def __init__(self, store: Store, study: str) -> None:
        self.lease = Lease.acquire(store, study, "mixsweep run")
        self.now = 0.0
        self.claims = Claims(
            store=store, study=study, token=self.lease.token, clock=lambda: self.now
        )

    def trains(self, run: str, keys: Sequence[str]) -> bool:
        return self.granted(run, keys) is not None

    def granted(self, run: str, keys: Sequence[str], start: int = 0) -> Granted | None:
        self.now += 4
        return self.claims.train(run, keys, lambda _: start)


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


def test_a_stage_is_trained_by_the_first_driver_that_claims_it(any_store: Store) -> None:
    first, second = Driver(any_store, "a"), Driver(any_store, "b")
    assert first.trains("x", KEYS[:4])
    assert not second.trains("y", KEYS[3:])
    assert second.trains("z", KEYS[4:])
    assert first.trains("x again, after its process died", KEYS[:4])


def test_a_stage_is_free_once_its_driver_withdraws_the_claim(store: Store) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.trains("x", KEYS[:4])
    first.claims.end("x")
    first.claims.refresh()
    assert second.trains("y", KEYS[:4])


def test_the_claims_of_a_dead_driver_are_ignored(store: Store) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    first.claims.expect({"w": (KEYS[5:7], KEYS[6:7])})
    assert first.trains("x", KEYS[:4])
    assert not second.trains("y", KEYS[:4])
    first.lease.release()
    assert second.trains("y", KEYS[:4])
    assert not read_claims(store, but="b").used
    again = Driver(store, "a")
    assert read_claims(store, but="b") == read_claims(store, but="a").__class__()
    assert not again.trains("x", KEYS[:4])


def test_a_run_held_back_by_a_claim_is_checked_again_after_an_interval(store: Store) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.trains("x", KEYS[:4])
    asked = []

    def start(is_to_ask: bool) -> int:
        asked.append(is_to_ask)
        return 0

    for _ in range(20):
        second.now += 0.05
        assert second.claims.train("y", KEYS[:4], start) is None
    assert asked[0] is False
    assert 3 <= len(asked) <= 6
    assert all(asked[1:])


def test_the_last_shared_stage_of_two_runs_is_requested(store: Store) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    assert first.trains("x", KEYS[:4])
    assert not second.trains("y", [*KEYS[:2], *KEYS[6:]])
    assert store.files.has(f"wanted/{KEYS[1]}")
    assert not second.trains("z", KEYS[:4])
    assert list(store.files.names("wanted")) == [f"wanted/{KEYS[1]}"]


def test_stages_needed_by_a_running_driver_are_not_removed(any_store: Store) -> None:
    launch, prune = Driver(any_store, "c"), Driver(any_store, "a")
    launch.claims.expect({"fork": (KEYS[2:3], KEYS[1:2])})
    assert launch.trains("x", KEYS[4:6])
    assert prune.claims.remove(KEYS) == (KEYS[0], *KEYS[2:4], *KEYS[6:])
    launch.lease.release()
    assert prune.claims.remove(KEYS) == tuple(KEYS)


def test_a_stage_that_a_planned_run_passes_is_not_removed(store: Store) -> None:
    planning, removing = Driver(store, "a"), Driver(store, "b")
    planning.claims.expect({"x": (KEYS[:4], ())})
    assert removing.claims.remove(KEYS) == tuple(KEYS[3:]), "the end of a run starts nothing"
    planning.claims.end("x")
    planning.claims.refresh()
    assert removing.claims.remove(KEYS) == tuple(KEYS)


def test_a_run_waits_while_its_start_stage_is_removed(store: Store) -> None:
    launch, prune = Driver(store, "c"), Driver(store, "a")
    prune.claims.remove(KEYS[1:2])
    launch.claims.expect({"fork": (KEYS[2:4], KEYS[1:2])})
    assert not launch.trains("fork", KEYS[2:4])
    prune.claims.close()
    assert launch.trains("fork", KEYS[2:4])


def test_a_run_waits_while_its_start_state_is_removed(store: Store) -> None:
    launch, prune = Driver(store, "c"), Driver(store, "a")
    prune.claims.remove(KEYS[1:2])
    assert launch.granted("x", KEYS[:4], start=2) is None
    prune.claims.close()
    assert launch.granted("x", KEYS[:4], start=2) == Granted(start=2, keep=frozenset())
    assert prune.claims.remove(KEYS[:2]) == (KEYS[0],)


def test_a_joining_driver_requests_stages_shared_with_a_run_in_training(
    any_store: Store,
) -> None:
    first, second = Driver(any_store, "a"), Driver(any_store, "b")
    assert first.trains("x", KEYS[:5])
    second.claims.expect({"y": ([*KEYS[:3], KEYS[6]], KEYS[1:2]), "x": (KEYS[:5], ())})
    assert {*any_store.files.names("wanted")} == {f"wanted/{key}" for key in KEYS[1:3]}
    second.claims.expect({"ends where x goes on": (KEYS[:4], ())})
    assert any_store.files.has(f"wanted/{KEYS[3]}")


def test_a_later_run_keeps_stages_where_runs_of_other_drivers_branch(
    store: Store,
) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")

    def kept() -> set[int]:
        granted = second.granted("z", KEYS[:4])
        assert granted is not None
        return set(granted.keep)

    first.claims.expect({"the same run": (KEYS[:4], ())})
    assert kept() == set()
    first.claims.expect({"one that parts": ([*KEYS[:3], KEYS[6]], KEYS[1:2])})
    assert kept() == {2}
    first.claims.end("the same run")
    first.claims.expect({"one that ends early": (KEYS[:1], ())})
    assert kept() == {2, 3}
    first.claims.expect({"one that goes on": (KEYS[:5], ())})
    assert kept() == {2, 4}
    first.lease.release()
    assert kept() == set()


def test_the_plan_of_a_driver_is_reread_only_after_a_change(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Driver(store, "a"), Driver(store, "b")
    first.claims.expect(dict.fromkeys("vwxyz", (KEYS[:2], ())))
    read: list[str] = []
    usual = store.files.read_present
    monkeypatch.setattr(
        store.files, "read_present", lambda names: (read.extend(names), usual(names))[1]
    )
    for run in "vwxyz":
        second.claims.of_others()
        first.claims.end(run)
        first.claims.refresh()
    assert read.count("claims/a.planned") == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"token": 1, "trained": 3}', b'{"token": 1, "trained": [[]]}'],
)
def test_a_damaged_claim_file_claims_no_stage(store: Store, tmp_path: Path, content: bytes) -> None:
    driver = Driver(store, "a")
    assert driver.trains("x", KEYS)
    (tmp_path / "claims" / "a.json").write_bytes(content)
    (tmp_path / "claims" / "No Study.json").write_bytes(b'{"token": 1, "trained": ["00"]}')
    assert not read_claims(store).trained


def test_claims_hold_while_their_driver_runs_although_its_lease_is_damaged(
    any_store: Store,
) -> None:
    first = Driver(any_store, "a")
    assert first.trains("x", KEYS)
    claimed = read_claims(any_store).trained
    assert claimed
    if isinstance(any_store.files, Bucket):
        any_store.files.write("leases/a/1.json", b"{")
    else:
        (any_store.files.root / "leases" / "a.json").write_bytes(b"{")
    assert Lease.current(any_store, "a") is None
    assert read_claims(any_store).trained == claimed
    assert not Driver(any_store, "b").trains("y", KEYS)
    first.lease.release()
    assert not read_claims(any_store, but="b").trained


@pytest.mark.parametrize("name", ["a.json", "a.json.tmp", "a.planned.tmp"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_or_pipe_at_the_path_of_a_claim_file_is_replaced(
    store: Store, tmp_path: Path, name: str, kind: str
) -> None:
    outside, place = tmp_path / "outside", tmp_path / "claims" / name
    outside.write_text("mine")
    place.parent.mkdir(mode=0o700)
    if kind == "link":
        place.symlink_to(outside)
    else:
        os.mkfifo(place)
    first, second = Driver(store, "a"), Driver(store, "b")
    first.claims.expect({"x": (KEYS[:4], ())})
    assert first.trains("x", KEYS[:4])
    assert not second.trains("y", KEYS[3:])
    assert outside.read_text() == "mine"


def test_at_most_one_of_several_simultaneous_drivers_trains_a_stage(store: Store) -> None:
    drivers = [Driver(store, name) for name in "abcd"]
    wins = 0
    with ThreadPoolExecutor(len(drivers)) as threads:
        for number in range(60):
            barrier = Barrier(len(drivers))

            def claim(driver: Driver, barrier: Barrier = barrier, number: int = number) -> bool:
                barrier.wait()
                return driver.trains(f"x{number}", [f"{number:032x}"[::-1]])

            won = sum(threads.map(claim, drivers))
            assert won <= 1
            wins += won
            for driver in drivers:
                driver.claims.end(f"x{number}")
                driver.claims.refresh()
    assert wins > 0
