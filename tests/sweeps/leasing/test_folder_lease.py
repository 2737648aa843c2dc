"""FolderLease: its files, including damaged ones and other files at their paths."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError, StoreFullError
from sweeps.leasing import folder_lease
from sweeps.leasing.holders import RunningRun, StudyBusyError
from sweeps.leasing.lease import Lease, ask_to_stop, asked_to_stop, read_progress
from tests.damages import DAMAGES, bound_by_modes

FILES = ("table1.json", "table1.progress.json", "table1.lock")


@pytest.fixture
def modest() -> Iterator[Store]:
    """Store whose file modes bind this process even if it is root."""
    with bound_by_modes() as folder:
        yield Store(str(folder / "store"))


def lease_file(store: Store, name: str) -> Path:
    return store.folder / "leases" / name


def leave_a_lease(store: Store, drivers: int) -> None:
    """Let some drivers take and release the lease."""
    for _ in range(drivers):
        with Lease.acquire(store, "table1", "run") as lease:
            lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])


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
        assert progress.running[0].seed == 1
        with pytest.raises(StudyBusyError, match=rf"\(token {lease.token}\)"):
            Lease.acquire(modest, "table1", "second")


@pytest.mark.parametrize("token", [2**62, 2**63 - 1])
def test_the_driver_after_a_forged_token_is_seen_and_can_be_stopped(
    store: Store, token: int
) -> None:
    leave_a_lease(store, 1)
    file = lease_file(store, "table1.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"token": token}))
    with Lease.acquire(store, "table1", "next") as lease:
        assert Lease.current(store, "table1") == lease.holder
        ask_to_stop(store, "table1", lease.holder, "finish")
        assert asked_to_stop(store, "table1", lease.holder) == "finish"


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
        assert progress.running[0].epoch == 8


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused_by_name_and_can_be_read(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    leave_a_lease(store, 1)
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(code, os.strerror(code))))
    with pytest.raises(StoreError, match=r"table1\.lock: this file system cannot lock files"):
        Lease.acquire(store, "table1", "run")
    assert Lease.current(store, "table1") is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_with_the_file_and_leaves_the_study_free(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Mock(side_effect=OSError(number, os.strerror(number))))
        with pytest.raises(StoreFullError) as caught:
            Lease.acquire(store, "table1", "run")
    assert str(caught.value).startswith(f"disk full: {lease_file(store, 'table1.json')} needs ")
    assert Lease.current(store, "table1") is None
    lease = Lease.acquire(store, "table1", "run")
    lease.release()
    assert lease.holder.token == 1


def test_a_lock_file_that_is_replaced_while_it_is_opened_is_not_taken_for_the_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, lock = Lease.acquire(store, "table1", "run"), lease_file(store, "table1.lock")
    opened = folder_lease.open_lock

    def late(path: Path) -> int:
        descriptor = opened(path)
        if not lock.with_suffix(".old").exists():
            first.release()
            lock.rename(lock.with_suffix(".old"))
            lock.touch()
        return descriptor

    monkeypatch.setattr(folder_lease, "open_lock", late)
    second = Lease.acquire(store, "table1", "run")
    assert second.is_held()
    with pytest.raises(StudyBusyError):
        Lease.acquire(store, "table1", "run")
    second.release()
