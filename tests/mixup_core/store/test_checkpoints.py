"""Store: its guarantees on disks and in buckets, and while others store or remove stages."""

import dataclasses
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import fsspec
import pytest

from mixup_core.records import EpochRecord
from mixup_core.store import local_files
from mixup_core.store.checkpoints import Store, identity_of, known_identity
from mixup_core.store.manifests import ADDED, EpochFacts, Stage
from tests import object_stores
from tests.damages import DAMAGES
from tests.mixup_core.store.faulty_disk import at_each_step
from tests.mixup_core.store.stored_files import (
    ENVIRONMENT,
    FACTS,
    KEY,
    RECORDS,
    SAME_SHARD,
    STATE,
    is_whole,
    manifest_of,
    quarantined,
    state_of,
    write,
)
from tests.races import race, write_stage


def store_in(folder: Path, name: str) -> Store:
    return Store(str(folder / name))


def test_opening_and_reading_a_store_creates_no_file(store: Store, url: str) -> None:
    assert store.keys() == {}
    assert store.read(KEY) is None
    assert store.failures.read_all() == {}
    assert store.verify() == ()
    store.drop_state(KEY)
    store.delete(KEY)
    store.failures.remove(KEY)
    files, root = fsspec.core.url_to_fs(url)
    assert not files.exists(root)


def test_forget_removes_one_environment_fact_only(store: Store) -> None:
    store.forget(KEY, "host")
    assert store.read(KEY) is None
    store.write(KEY, records=RECORDS, facts=FACTS, environment=ENVIRONMENT, state=STATE)
    before = store.read(KEY)
    assert before is not None
    store.forget(KEY, "nothing")
    assert store.read(KEY) == before
    store.forget(KEY, "host")
    after = store.read(KEY)
    assert after == dataclasses.replace(before, environment={"threads": "1"})
    assert store.states.read(before) == STATE


def test_partial_files_of_dead_writers_are_deleted_and_stored_ones_kept(disk: Store) -> None:
    for key in ("aa01", "aa02", "aa03"):
        write(disk, key)
    manifest_of(disk, "aa01").unlink()
    manifest_of(disk, "aa03").unlink()
    torn = manifest_of(disk, "aa01").with_name("aa01.json.x1y2z3_4.tmp")
    torn.write_bytes(b"{")
    disk.clear_torn("aa01", "aa02")
    assert not torn.exists()
    assert disk.keys() == {"aa02": True}
    left = sorted(path.name[:4] for path in (disk.folder / "states").rglob("*.bin"))
    assert left == ["aa02", "aa03"], "another run's states are not ours to clear"


def test_the_first_stage_is_kept_and_differing_records_are_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    first = write(store)
    with caplog.at_level(logging.WARNING):
        assert write(store, state=b"other state") == first
    assert caplog.messages == []

    other = (RECORDS[0], EpochRecord(epoch=1, metrics={"train/loss": 1.0, "test/error": 0.0}))
    assert write(store, records=other) == first
    assert write(store, "aa01", state=None).state is None
    assert write(store, "aa01", records=other).state is None
    assert [KEY in caplog.messages[0], "aa01" in caplog.messages[1]] == [True, True]
    assert store.read(KEY) == first
    assert store.states.read(first) == STATE


def test_a_stage_without_a_state_gains_one_and_keeps_its_first_facts(store: Store) -> None:
    write(store, state=None)
    later = tuple(EpochFacts(seconds=9.0, stored_at_ms=9) for _ in RECORDS)
    gained = write(store, facts=later)
    assert gained.facts == FACTS
    assert store.read(KEY) == gained
    assert store.states.read(gained) == STATE


def test_dropping_a_state_keeps_the_records_and_a_removal_every_other_stage(store: Store) -> None:
    write(store)
    twin = write(store, SAME_SHARD)
    store.drop_state(KEY)
    stage = store.read(KEY)
    assert (stage.state, stage.records, stage.facts) == (None, RECORDS, FACTS)
    assert store.states.read(stage) is None
    assert store.states.read(twin) == STATE
    store.delete(KEY)
    assert store.read(KEY) is None
    assert store.keys() == {SAME_SHARD: True}
    assert list(store.stages()) == [twin]


def test_manifests_and_states_that_a_plan_needs_are_verified(
    disk: Store, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("aa01", "bb02", "cc03", "dd04"):
        write(disk, key)
    for key in ("aa01", "cc03"):
        DAMAGES["truncated"](manifest_of(disk, key))
    DAMAGES["bit flipped"](state_of(disk, "dd04"))
    assert disk.keys() == dict.fromkeys(["aa01", "bb02", "cc03", "dd04"], True)
    assert quarantined(disk) == []
    assert disk.keys(proven=["aa01", "bb02", "ee05"]) == {"bb02": True, "cc03": True, "dd04": True}
    assert quarantined(disk) == ["aa01.json"]
    proven = disk.keys(proven_states=["bb02", "cc03", "dd04"])
    assert proven == {"bb02": True, "dd04": False}
    assert len(caplog.messages) == 3


def test_an_inconsistent_stage_is_refused_before_writing(store: Store) -> None:
    with pytest.raises(ValueError, match=r"records=2, facts=1"):
        write(store, facts=FACTS[:1])
    assert store.keys() == {}


def test_verify_removes_old_files_of_dead_writers_and_keeps_young_ones(disk: Store) -> None:
    write(disk)
    left = [
        manifest_of(disk).with_name(f"{KEY}.json.x1y2z3_4.tmp"),
        state_of(disk).with_name(f"{KEY}-{'0' * 64}.bin"),
        *(Path(disk.url) / top / "a.json.x1y2z3_4.tmp" for top in ("leases", "studies/digits")),
        Path(disk.url) / "claims" / f"{KEY}.digits.3.x1y2z3_4.tmp",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    assert disk.verify() == ()
    assert all(path.exists() for path in left)
    hour_ago = time.time() - 3601
    for path in (*left, manifest_of(disk)):
        os.utime(path, (hour_ago, hour_ago))
    assert disk.keys() == {KEY: True}
    assert disk.verify() == ()
    assert not any(path.exists() for path in left)
    assert is_whole(disk)


@pytest.mark.parametrize("stale_after", [0.0, 3600.0])
def test_verify_accepts_that_another_process_removes_a_listed_file(
    store: Store, stale_after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store)
    store.files.write(f"states/{KEY[:2]}/{KEY}-{'0' * 64}.bin", b"half")
    store.files.write("leases/digits.json.x1y2z3_4.tmp", b"half")
    age = type(store.files).age

    def age_of_removed(files: Any, name: str) -> float:
        files.remove(name)
        return age(files, name)

    monkeypatch.setattr(type(store.files), "age", age_of_removed)
    assert store.verify(stale_after=stale_after) == ()
    assert is_whole(store)


def test_files_of_other_programs_stay_when_the_folders_are_shared(store: Store) -> None:
    names = (
        "states/weights.pt", f"states/{KEY[:2]}/{KEY}-notes.txt", f"stages/{KEY[:2]}/{KEY}.md",
        "stages/draft.tmp", "studies/paper.tex.tmp", "failures/2026/notes.json",
        "failures/notes.json", "predictions/model.bin.tmp", "stages/aa/abc.json",
        f"stages/zz/{KEY}.json", f"stages/{KEY[:2]}/{KEY}{'0' * 64}.json",
        f"states/aa/abc-{'0' * 64}.bin", "predictions/aa/ab01.bin",
    )  # fmt: skip
    write(store)
    for name in names:
        store.files.write(name, b"foreign")
    assert store.verify(stale_after=0) == ()
    assert [stage.key for stage in store.stages()] == [KEY]
    assert is_whole(store)
    assert store.failures.read_all() == {}
    store.drop_state(KEY)
    store.delete(KEY)
    store.clear_torn(KEY)
    assert store.keys() == {}
    assert {store.files.read(name) for name in names} == {b"foreign"}
    assert store.quarantined() == ()


def test_a_partial_file_of_a_living_writer_is_not_deleted(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, seen = local_files._link, []

    def link_after_a_clearing(source: Path, path: Path) -> bool:
        for clear in (lambda: disk.clear_torn("aa01"), lambda: disk.verify(stale_after=0)):
            clear()
            seen.append(source.exists())
        return link(source, path)

    monkeypatch.setattr(local_files, "_link", link_after_a_clearing)
    write(disk, "aa01")
    assert seen == [True, True]
    assert is_whole(disk, "aa01")


@pytest.mark.parametrize("before", ["nothing", "records"])
def test_a_writer_killed_at_any_step_leaves_the_old_or_the_new_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    def prepared(name: str) -> Store:
        store = store_in(tmp_path, name)
        if before == "records":
            write(store, state=None)
        return store

    outcomes = set()
    for store, _ in at_each_step(monkeypatch, None, prepared, write):
        stage = store.read(KEY)
        assert before == "nothing" or stage is not None
        is_stored = stage is not None and stage.state is not None
        outcomes.add(is_stored)
        assert is_whole(store) or not is_stored
        write(store)
        assert is_whole(store)
        assert store.verify(stale_after=0) == ()
        assert len([path for path in store.folder.rglob("*") if path.is_file()]) == 2
    assert outcomes == {False, True}


@pytest.mark.parametrize("removal", ["drop_state", "delete"])
def test_a_removal_killed_at_any_step_leaves_no_manifest_with_a_missing_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removal: str
) -> None:
    def prepared(name: str) -> Store:
        write(store_in(tmp_path, name))
        return store_in(tmp_path, name)

    remove = methodcaller(removal, KEY)
    for store, _ in at_each_step(monkeypatch, None, prepared, remove):
        stage = store.read(KEY)
        assert removal == "delete" or stage is not None
        assert stage is None or stage.state is None or is_whole(store)
        remove(store)
        assert store.keys().get(KEY, False) is False


def test_concurrent_writers_all_return_the_stage_of_one_writer(disk: Store) -> None:
    barrier = threading.Barrier(4)

    def compete(key: str, writer: int) -> Stage:
        barrier.wait()
        state = bytes([writer]) * 5000
        return write(disk, key, state, environment={"writer": str(writer)})

    with ThreadPoolExecutor(4) as pool:
        for number in range(10):
            key = f"{number:04x}"
            returned = list(pool.map(partial(compete, key), range(4)))
            winner = disk.read(key)
            assert returned == [winner] * 4
            assert disk.states.read(winner) == bytes([int(winner.environment["writer"])]) * 5000


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("url", object_stores.NAMES, indirect=True)
def test_concurrent_processes_all_get_the_stage_of_one_process_in_every_round(url: str) -> None:
    told = race(write_stage, url, racers=4, rounds=100)
    assert [len(set(sum(got, ()))) for got in told] == [1] * 100
    assert len({got[0] for got in told}) > 1, "one racer was always first: no race"


def test_records_trained_here_replace_those_that_an_archive_brought(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    other = [dataclasses.replace(record, metrics={"test/error": 0.9}) for record in RECORDS]
    write(store, state=None, records=other, environment={ADDED: "x"})
    assert write(store).records == RECORDS
    assert is_whole(store)
    again = write(store, state=None, records=other, environment={ADDED: "x"})
    assert again.records == RECORDS
    assert ADDED not in again.environment


def test_a_store_keeps_its_identity_and_differs_from_other_stores(tmp_path: Path) -> None:
    one, other = store_in(tmp_path, "one"), store_in(tmp_path, "other")
    assert known_identity(one) is None
    assert identity_of(one) == identity_of(one) == known_identity(Store(str(tmp_path / "one")))
    assert identity_of(other) != identity_of(one)


@pytest.mark.parametrize("content", [b"", b"\xff", b"x" * 32, b"0" * 31, b"0" * 33])
def test_a_damaged_identity_is_replaced(tmp_path: Path, content: bytes) -> None:
    store = Store(str(tmp_path))
    (tmp_path / "identity").write_bytes(content)
    assert known_identity(store) is None
    assert identity_of(store) == known_identity(store)
