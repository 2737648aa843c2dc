"""Lease: one driver per study, tried with real processes that are killed and stopped."""

import json
import os
import re
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
from tests.damages import DAMAGES, bound_by_modes

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
    """A process that holds `table1`, in a process group of its own that also has its child."""
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
    """Wait until the driver holds its lease and return the pid of its child."""
    stream: IO[str] | None = driver.stdout
    assert stream is not None
    return int(stream.readline())


def test_the_latest_driver_is_known_while_it_lives_and_after(store: Store) -> None:
    assert Lease.latest(store, "table1") is None
    for command in ("first", "second"):
        with Lease.acquire(store, "table1", command) as lease:
            assert Lease.latest(store, "table1") == lease.holder
    found = Lease.latest(store, "table1")
    assert found is not None
    assert (found.command, found.token) == ("second", 2)


def test_a_second_driver_is_told_who_drives_the_study(
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
        f"study 'table1' is driven by pid {driver.pid} on {os.uname().nodename} since {since} "
        "(token 1); wait for it or stop it first"
    )
    with Lease.acquire(store, "table2", "another study"):
        pass


def test_current_shows_the_holder_and_does_not_take_its_place(
    store: Store, driver: subprocess.Popen[str]
) -> None:
    grandchild_of(driver)
    holder = Lease.current(store, "table1")
    assert holder is not None
    assert (holder.pid, holder.token) == (driver.pid, 1)
    assert holder.command == "mixsweep run table1"
    assert abs(holder.started_at_ms / 1000 - time.time()) < 30
    assert Lease.current(store, "table1") == holder


def test_a_killed_driver_frees_its_study_at_once_though_its_child_lives_on(
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


def test_a_stopped_driver_still_holds_its_study(
    store: Store, driver: subprocess.Popen[str]
) -> None:
    grandchild_of(driver)
    driver.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, driver.pid, os.WSTOPPED)
    with pytest.raises(StudyBusyError, match=f"pid {driver.pid} "):
        Lease.acquire(store, "table1", "second")
    assert Lease.current(store, "table1") is not None


def test_tokens_grow_with_every_driver(store: Store) -> None:
    tokens = []
    for _ in range(3):
        with Lease.acquire(store, "table1", "run") as lease:
            tokens.append(lease.token)
            assert Lease.current(store, "table1") == lease.holder
        assert Lease.current(store, "table1") is None
    assert tokens == [1, 2, 3]


def test_one_process_cannot_drive_a_study_twice(store: Store) -> None:
    with (
        Lease.acquire(store, "table1", "run"),
        pytest.raises(StudyBusyError, match=f"pid {os.getpid()} "),
    ):
        Lease.acquire(store, "table1", "run")


def test_a_driver_that_failed_to_take_over_leaves_the_study_free(
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


def test_a_holder_of_another_day_is_named_with_its_date(store: Store, tmp_path: Path) -> None:
    record = tmp_path / "store" / "leases" / "table1.json"
    with Lease.acquire(store, "table1", "run"):
        record.write_text(json.dumps(json.loads(record.read_text()) | {"started_at_ms": 0}))
        with pytest.raises(StudyBusyError, match=r" since 19(70-01-01|69-12-31) \d\d:\d\d \("):
            Lease.acquire(store, "table1", "run")


def test_a_holder_that_has_not_written_who_it_is_still_holds(store: Store, tmp_path: Path) -> None:
    with Lease.acquire(store, "table1", "run"):
        (tmp_path / "store" / "leases" / "table1.json").unlink()
        text = "study 'table1' is driven by another process; wait for it or stop it first"
        with pytest.raises(StudyBusyError, match=f"^{re.escape(text)}$"):
            Lease.acquire(store, "table1", "run")


def test_a_lease_knows_when_it_has_a_successor(store: Store, tmp_path: Path) -> None:
    lease = Lease.acquire(store, "table1", "run")
    assert lease.is_held()
    (tmp_path / "store" / "leases" / "table1.lock").unlink()
    with Lease.acquire(store, "table1", "run") as successor:
        assert successor.is_held()
        assert not lease.is_held()
    assert not successor.is_held()
    lease.release()
    lease.release()


def test_progress_is_shown_as_the_driver_last_wrote_it(store: Store) -> None:
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


def test_asking_for_the_driver_creates_nothing(store: Store, tmp_path: Path) -> None:
    assert Lease.current(store, "table1") is None
    assert read_progress(store, "table1") is None
    assert list(tmp_path.iterdir()) == []


def test_files_are_readable_by_their_owner_alone(store: Store, tmp_path: Path) -> None:
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


FILES = ("table1.json", "table1.progress.json", "table1.lock")


@pytest.fixture
def modest() -> Iterator[Store]:
    """A store whose files this process can be kept from, even if it is root's."""
    with bound_by_modes() as folder:
        yield Store(str(folder / "store"))


def lease_file(store: Store, name: str) -> Path:
    assert store.folder is not None
    return store.folder / "leases" / name


def leave_a_lease(store: Store, drivers: int) -> None:
    """Let some drivers come and go."""
    for _ in range(drivers):
        with Lease.acquire(store, "table1", "run") as lease:
            lease.write_progress([RunningRun(arm="erm", seed=0, epoch=7)])


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_lease_damaged_in_any_way_is_taken_all_the_same_and_tokens_grow(
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
def test_a_damaged_lease_of_an_earlier_version_does_not_let_tokens_go_back(
    modest: Store, damage: str
) -> None:
    """That version left the lock file empty."""
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
def test_a_record_damaged_while_its_driver_lives_is_written_again(
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


def test_damage_is_told_in_a_line_that_names_the_file(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    leave_a_lease(store, 1)
    DAMAGES["random"](lease_file(store, "table1.json"))
    DAMAGES["a FIFO"](lease_file(store, "table1.lock"))
    leave_a_lease(store, 1)
    lock, holder = caplog.messages
    assert lock.endswith("leases/table1.lock is no file; moved to quarantine")
    assert holder.endswith("leases/table1.json is damaged; taken for absent")


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "7"},
        {"token": True},
        {"token": 0},
        {"pid": None},
        {"host": 5},
        {"started_at_ms": 10**18},
        {"command": None},
    ],
)
def test_a_holder_with_a_value_of_another_kind_is_not_known(
    store: Store, changes: dict[str, object]
) -> None:
    leave_a_lease(store, 1)
    record = lease_file(store, "table1.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | changes))
    assert Lease.latest(store, "table1") is None
    with Lease.acquire(store, "table1", "next") as lease:
        assert lease.token == 2


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


def test_a_lease_that_the_first_version_wrote_is_read(store: Store) -> None:
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


@pytest.mark.parametrize("study", ["", "../x", "a/b", "Table1", "a" * 101, "a\n"])
def test_a_name_that_is_no_study_name_is_refused(store: Store, study: str) -> None:
    with pytest.raises(ValueError, match="a-z, 0-9 and -"):
        Lease.acquire(store, study, "run")
