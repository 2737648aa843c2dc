"""FolderLease: its files, including damaged ones and other files at their paths."""

import errno
import fcntl
import json
import os
import queue
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError, StoreFullError
from mixup_core.store.json_records import name_once
from sweeps.leasing import folder_lease
from sweeps.leasing.folder_lease import FolderLease
from sweeps.leasing.holders import BUSY, RunningRun, StudyBusyError, StudyLostError
from sweeps.leasing.lease import Lease, read_progress
from tests.damages import DAMAGES, NO_FILES, bound_by_modes


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


FILES = ("table1.json", "table1.progress.json", "table1.lock")


@pytest.fixture
def modest() -> Iterator[Store]:
    """Store whose file modes bind this process even if it is root."""
    with bound_by_modes() as folder:
        yield Store(str(folder / "store"))


def lease_file(store: Store, name: str) -> Path:
    assert store.folder is not None
    return store.folder / "leases" / name


def leave_a_lease(store: Store, drivers: int) -> None:
    """Let some drivers take and release the lease."""
    for _ in range(drivers):
        with Lease.acquire(store, "table1", "run") as lease:
            lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])


def root_of(store: Store) -> Path:
    assert store.folder is not None
    return store.folder


def take(store: Store) -> FolderLease:
    return FolderLease(root_of(store), "table1", "mixsweep run table1")


def write_record(store: Store, name: str, **changes: object) -> None:
    """Change fields of a record."""
    path = lease_file(store, name)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_failed_acquisition_leaves_the_study_free(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    Lease.acquire(store, "table1", "run").release()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output"):
            Lease.acquire(store, "table1", "run")
    with Lease.acquire(store, "table1", "run") as lease:
        assert lease.token > 1


def test_a_lease_without_its_record_is_still_held(store: Store, tmp_path: Path) -> None:
    with Lease.acquire(store, "table1", "run"):
        (tmp_path / "store" / "leases" / "table1.json").unlink()
        advice = "wait until it ends, or run `mixsweep stop table1`"
        text = f"study 'table1' is already run by another process; {advice}"
        with pytest.raises(StudyBusyError, match=f"^{re.escape(text)}$"):
            Lease.acquire(store, "table1", "run")


def test_a_lease_is_not_held_once_another_driver_has_acquired_it(
    store: Store, tmp_path: Path
) -> None:
    lease = Lease.acquire(store, "table1", "run")
    assert lease.is_held()
    (tmp_path / "store" / "leases" / "table1.lock").unlink()
    with Lease.acquire(store, "table1", "run") as successor:
        assert successor.is_held()
        assert not lease.is_held()
    assert not successor.is_held()
    lease.release()
    lease.release()


def test_a_query_for_the_driver_creates_no_file(store: Store, tmp_path: Path) -> None:
    assert Lease.current(store, "table1") is None
    assert read_progress(store, "table1") is None
    assert list(tmp_path.iterdir()) == []


def test_lease_files_are_readable_only_by_their_owner(store: Store, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Lease.acquire(store, "table1", "run") as lease:
            lease.write_progress(())
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "store").rglob("*")}
    assert modes == {
        "leases": 0o700,
        "table1.lock": 0o600,
        "table1.json": 0o600,
        "table1.progress.json": 0o600,
    }


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_lease_can_be_acquired_with_a_larger_token(
    modest: Store, name: str, damage: str
) -> None:
    leave_a_lease(modest, 3)
    DAMAGES[damage](lease_file(modest, name))
    if (name, damage) != ("table1.lock", "unreadable"):  # who cannot ask must not guess
        assert Lease.current(modest, "table1") is None
        assert read_progress(modest, "table1") is None
    with Lease.acquire(modest, "table1", "next") as lease:
        assert lease.token > 3
        assert lease.is_held()
        assert Lease.current(modest, "table1") == lease.holder == Lease.latest(modest, "table1")
        lease.write_progress([RunningRun(arm="erm", seed=1, epoch=2)])
        progress = read_progress(modest, "table1")
        assert progress is not None
        assert progress.running[0].seed == 1
        with pytest.raises(StudyBusyError, match=rf"\(token {lease.token}\)"):
            Lease.acquire(modest, "table1", "second")


@pytest.mark.parametrize("damage", DAMAGES)
def test_tokens_do_not_decrease_after_damage_to_a_lease_of_an_earlier_version(
    modest: Store, damage: str
) -> None:
    """Earlier versions left the lock file empty."""
    leave_a_lease(modest, 3)
    lease_file(modest, "table1.lock").write_bytes(b"")
    lease_file(modest, "table1.progress.json").unlink()
    DAMAGES[damage](lease_file(modest, "table1.json"))
    with Lease.acquire(modest, "table1", "next") as lease:
        assert lease.token > (0 if damage == "missing" else 3)
        first = lease.token
    with Lease.acquire(modest, "table1", "next") as lease:
        assert lease.token == first + 1


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES[:2])
def test_a_record_damaged_during_a_lease_is_rewritten(
    modest: Store, name: str, damage: str
) -> None:
    with Lease.acquire(modest, "table1", "run") as lease:
        lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])
        DAMAGES[damage](lease_file(modest, name))
        assert lease.is_held()
        with pytest.raises(StudyBusyError):
            Lease.acquire(modest, "table1", "second")
        lease.write_progress([RunningRun(arm="erm", seed=0, epoch=8)])
        assert Lease.current(modest, "table1") == lease.holder
        progress = read_progress(modest, "table1")
        assert progress is not None
        assert progress.running[0].epoch == 8


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused_by_name_and_can_be_read(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    leave_a_lease(store, 1)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match=r"table1\.lock: this file system cannot lock files"):
        Lease.acquire(store, "table1", "run")
    assert Lease.current(store, "table1") is None


def test_damage_is_logged_in_one_line_that_names_the_file(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    name_once.cache_clear()
    leave_a_lease(store, 1)
    DAMAGES["random"](lease_file(store, "table1.json"))
    DAMAGES["a FIFO"](lease_file(store, "table1.lock"))
    leave_a_lease(store, 1)
    lock, holder = caplog.messages
    assert lock.endswith("leases/table1.lock is no file; moved to quarantine")
    assert holder.endswith("leases/table1.json: is not a JSON mapping; the file is ignored")


def test_fields_that_a_later_version_added_to_a_lease_are_ignored(store: Store) -> None:
    with Lease.acquire(store, "table1", "run") as lease:
        lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])
        for name in FILES[:2]:
            path = lease_file(store, name)
            record = json.loads(path.read_text())
            for run in record.get("running", []):
                run["loss"] = 0.5
            path.write_text(json.dumps({"format": 2, **record, "cluster": {"nodes": 3}}))
        assert lease.is_held()
        assert Lease.current(store, "table1") == lease.holder
        progress = read_progress(store, "table1")
        assert progress is not None
        assert progress.running == (RunningRun(arm="erm", seed=0, epoch=7),)
    with Lease.acquire(store, "table1", "run") as lease:
        assert lease.token == 2


def test_a_lease_of_the_first_version_can_be_read(store: Store) -> None:
    lock = lease_file(store, "table1.lock")
    lock.parent.mkdir(parents=True)
    lock.touch()
    lease_file(store, "table1.json").write_text(
        '{"token": 41, "host": "node-a", "boot_id": null, "pid": 7, '
        '"started_at_ms": 1795298400000, "command": "mixsweep run table1"}'
    )
    found = Lease.latest(store, "table1")
    assert found is not None
    assert (found.token, found.host, found.boot_id, found.pid) == (41, "node-a", None, 7)
    with Lease.acquire(store, "table1", "run") as lease:
        assert lease.token == 42


@pytest.mark.parametrize("damage", ["lost", "damaged"])
def test_the_token_is_the_time_if_the_record_is_lost(store: Store, damage: str) -> None:
    leave_a_lease(store, 3)
    record = lease_file(store, "table1.json")
    record.unlink() if damage == "lost" else record.write_bytes(b"\xff")
    before = int(time.time())
    lease = take(store)
    lease.release()
    assert before <= lease.holder.token <= time.time()
    leave_a_lease(store, 1)
    assert Lease.acquire(store, "table1", "run").token == lease.holder.token + 2


def test_a_record_larger_than_a_mebibyte_counts_as_damaged(store: Store) -> None:
    leave_a_lease(store, 1)
    record = lease_file(store, "table1.json")
    whole = record.read_bytes()
    record.write_bytes(whole.ljust(2**20))
    assert FolderLease.latest(root_of(store), "table1") is not None
    record.write_bytes(whole.rjust(2**20 + 1))
    assert FolderLease.latest(root_of(store), "table1") is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_with_the_file_and_leaves_the_study_free(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fill(descriptor: int, content: bytes) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        with pytest.raises(StoreFullError) as caught:
            take(store)
    assert str(caught.value).startswith(f"disk full: {lease_file(store, 'table1.json')} needs ")
    assert FolderLease.current(root_of(store), "table1") is None
    lease = take(store)
    lease.release()
    assert lease.holder.token == 1


def test_a_query_for_the_driver_does_not_block_the_next_driver(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query takes the lock for a moment, for which the next driver waits."""
    leave_a_lease(store, 1)
    asking = os.open(lease_file(store, "table1.lock"), os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    waits = []

    def end_the_question(seconds: float) -> None:
        waits.append(seconds)
        fcntl.flock(asking, fcntl.LOCK_UN)

    monkeypatch.setattr(time, "sleep", end_the_question)
    lease = take(store)
    os.close(asking)
    assert len(waits) == 1
    assert lease.is_held()
    lease.release()


def test_two_simultaneous_queries_report_no_driver(store: Store) -> None:
    leave_a_lease(store, 1)
    asking = os.open(lease_file(store, "table1.lock"), os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    assert FolderLease.current(root_of(store), "table1") is None
    os.close(asking)


def test_a_user_without_permission_gets_a_permission_error(modest: Store) -> None:
    leave_a_lease(modest, 1)
    lease_file(modest, "table1.lock").chmod(0)
    with pytest.raises(PermissionError):
        FolderLease.current(root_of(modest), "table1")


@pytest.mark.parametrize("damage", [name for name in NO_FILES if name != "unreadable"])
def test_a_folder_at_the_path_of_the_lock_file_moves_to_quarantine(
    store: Store, damage: str
) -> None:
    leave_a_lease(store, 1)
    lock = lease_file(store, "table1.lock")
    NO_FILES[damage](lock)
    kind = lock.lstat().st_mode
    leave_a_lease(store, 1)
    aside = root_of(store) / "quarantine" / "table1.lock"
    assert aside.lstat().st_mode == kind
    if damage == "a folder":
        assert (aside / "notes.txt").read_text() == "of a colleague"


@pytest.mark.parametrize("name", FILES[:2])
def test_a_folder_at_the_path_of_a_record_moves_to_quarantine_with_its_files(
    store: Store, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    leave_a_lease(store, 1)
    NO_FILES["a folder"](lease_file(store, name))
    leave_a_lease(store, 1)
    notes = root_of(store) / "quarantine" / name / "notes.txt"
    assert notes.read_text() == "of a colleague"
    assert caplog.messages[-1].endswith(f"leases/{name} is no file; moved to quarantine")


def test_a_released_lease_is_not_held(store: Store) -> None:
    lease = take(store)
    assert lease.is_held()
    lease.release()
    assert not lease.is_held()
    assert FolderLease.latest(root_of(store), "table1") == lease.holder


def test_a_replaced_lock_file_does_not_count_as_the_lock_of_this_driver(store: Store) -> None:
    lease = take(store)
    lock = lease_file(store, "table1.lock")
    lock.rename(lock.with_suffix(".old"))
    lock.touch()
    write_record(store, "table1.json", pid=0)
    assert not lease.is_held()
    lease.release()


def test_a_superseded_driver_does_not_write_the_record_of_its_successor(store: Store) -> None:
    first = take(store)
    lease_file(store, "table1.lock").unlink()
    second = take(store)
    first.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])
    assert FolderLease.latest(root_of(store), "table1") == second.holder
    assert FolderLease.progress(root_of(store), "table1") is None
    second.write_progress([RunningRun(arm="erm", seed=0, epoch=8)], 12.5)
    progress = FolderLease.progress(root_of(store), "table1")
    assert progress is not None
    assert (progress.token, progress.running[0].epoch, progress.seconds_left) == (2, 8, 12.5)
    first.release()
    second.release()


@pytest.mark.parametrize("loss", ["deleted", "replaced", "moved"])
def test_a_driver_whose_lock_file_was_deleted_is_interrupted_and_stops(
    store: Store, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
    monkeypatch.setattr(folder_lease, "_LOOK_EVERY", 0.05)
    monkeypatch.setattr(folder_lease, "interrupt_main_thread", told.put)
    lock, root = lease_file(store, "table1.lock"), root_of(store)

    def hold() -> None:
        with Lease.acquire(store, "table1", "run") as lease:
            time.sleep(0.5)
            assert told.empty()
            if loss == "moved":
                root.rename(root.with_name("elsewhere"))
            else:
                lock.unlink()
            if loss == "replaced":
                lock.touch()
            text, code = told.get(timeout=30)
            assert code == BUSY
            assert text.startswith(f"study 'table1': {lock} was deleted or moved")
            assert not lease.is_held()
            lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])

    with pytest.raises(StudyLostError, match="so this driver has lost its lease and stops"):
        hold()
    assert not (loss == "moved" and root.exists())


def test_a_lock_file_that_is_replaced_while_it_is_opened_is_not_taken_for_the_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, lock = take(store), lease_file(store, "table1.lock")
    opened = folder_lease.open_lock

    def late(path: Path) -> int:
        descriptor = opened(path)
        if not lock.with_suffix(".old").exists():
            first.release()
            lock.rename(lock.with_suffix(".old"))
            lock.touch()
        return descriptor

    monkeypatch.setattr(folder_lease, "open_lock", late)
    second = take(store)
    assert second.is_held()
    with pytest.raises(StudyBusyError):
        take(store)
    second.release()


@pytest.mark.parametrize("name", ["../table1", "Table1", ""])
def test_an_invalid_study_name_is_refused_before_a_file_is_created(store: Store, name: str) -> None:
    for ask in (FolderLease.latest, FolderLease.current, FolderLease.progress):
        with pytest.raises(ValueError, match="a-z, 0-9 and -"):
            ask(root_of(store), name)
    with pytest.raises(ValueError, match="a-z, 0-9 and -"):
        FolderLease(root_of(store), name, "run")
    assert not root_of(store).exists()


def test_a_driver_killed_during_training_is_distinguished_from_one_that_ended(store: Store) -> None:
    assert Lease.cut_off(store, "table1") is None
    running = [RunningRun(arm="erm", seed=3, epoch=7)]
    lease = Lease.acquire(store, "table1", "run")
    lease.write_progress(running)
    assert Lease.cut_off(store, "table1") is None, "it lives"
    lease.release()
    assert Lease.cut_off(store, "table1") is None, "it released its lease"
    script = (
        "import os, sys; from mixup_core.store.checkpoints import Store; "
        "from sweeps.leasing.holders import RunningRun; from sweeps.leasing.lease import Lease; "
        "lease = Lease.acquire(Store(sys.argv[1]), 'table1', 'run'); "
        "lease.write_progress([RunningRun(arm='erm', seed=3, epoch=7)]); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(root_of(store))], check=False)
    cut = Lease.cut_off(store, "table1")
    assert cut is not None
    assert list(cut.running) == running
    assert "while it trained erm seed 3 (epoch 7)" in cut.spell_death()
    Lease.acquire(store, "table1", "run").release()
    assert Lease.cut_off(store, "table1") is None, "a later driver ended"
