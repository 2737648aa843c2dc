"""Temporary folders: private whatever the umask, and gone with their process."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mixup_core import temporary as module
from mixup_core.temporary import is_left, temporary_folder

DRIVER = """
import sys, time
from pathlib import Path
from mixup_core.temporary import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "ray" / "session").mkdir(parents=True)
    (folder / "ray" / "session" / "log").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        yield Path(folder)


@pytest.fixture
def driver(place: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(place)], stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def folder_of(driver: "subprocess.Popen[str]") -> Path:
    assert driver.stdout is not None
    return Path(driver.stdout.readline().strip())


def test_who_asks_whether_it_is_left_learns_whether_its_process_is_dead(
    place: Path, driver: "subprocess.Popen[str]"
) -> None:
    folder = folder_of(driver)
    assert not is_left(folder)
    driver.kill()
    driver.wait()
    assert is_left(folder)
    (folder / "lock").unlink()
    assert is_left(folder)
    assert is_left(place / "never made")
    with temporary_folder(place) as own:
        assert not is_left(own)


def test_it_is_private_under_any_umask_and_gone_at_the_end(place: Path) -> None:
    before = os.umask(0)
    try:
        with temporary_folder(place) as folder:
            (folder / "ray" / "logs").mkdir(parents=True)
            modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, folder / "lock")}
            assert folder.parent == place
    finally:
        os.umask(before)
    assert modes == {folder.name: 0o700, "lock": 0o600}
    assert list(place.iterdir()) == []


def test_it_is_gone_though_what_it_was_for_failed(place: Path) -> None:
    def fail() -> None:
        with temporary_folder(place) as folder:
            (folder / "file").touch()
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert list(place.iterdir()) == []


def test_what_a_killed_driver_left_is_removed_and_a_living_ones_stays(
    place: Path, driver: "subprocess.Popen[str]"
) -> None:
    left = folder_of(driver)
    driver.send_signal(signal.SIGSTOP)
    with temporary_folder(place):
        assert (left / "ray" / "session" / "log").exists()
    assert left.exists()
    driver.kill()
    driver.wait()
    with temporary_folder(place) as folder:
        assert list(place.iterdir()) == [folder]


def test_what_its_last_processes_still_write_is_removed_at_the_end(
    place: Path, driver: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    left = folder_of(driver)
    driver.kill()
    driver.wait()
    rmtree = module.shutil.rmtree

    def rmtree_while_it_is_written(path: Path, **options: bool) -> None:
        rmtree(path, **options)
        path.mkdir()

    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "rmtree", rmtree_while_it_is_written)
        module.collect(place)
    assert sorted(path.name for path in left.iterdir()) == ["lock", "ray"]
    with temporary_folder(place):
        pass
    assert list(place.iterdir()) == []


def test_what_its_last_processes_write_after_its_lock_is_gone_is_removed_by_the_next(
    place: Path, driver: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    left = folder_of(driver)
    driver.kill()
    driver.wait()
    rmdir = Path.rmdir

    def rmdir_too_late(folder: Path) -> None:
        (left / "ray" / "logs").mkdir(parents=True)
        rmdir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", rmdir_too_late)
        module.collect(place)
    assert [path.name for path in left.iterdir()] == ["ray"]
    with temporary_folder(place):
        pass
    assert list(place.iterdir()) == []


def test_one_that_is_locked_while_it_is_looked_at_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, is_file = place / "mixsweep-1-aaaa~", Path.is_file
    folder.mkdir()

    def is_file_too_early(path: Path) -> bool:
        found = is_file(path)
        (folder / "lock").touch()
        (folder / "ray").mkdir()
        return found

    monkeypatch.setattr(Path, "is_file", is_file_too_early)
    module.collect(place)
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "ray"]


def test_folders_of_others_with_such_a_name_are_left_alone(place: Path) -> None:
    (place / "mixsweep-notes").mkdir()
    (place / "mixsweep-notes" / "mine").touch()
    (place / "mixsweep-20261122-0930").mkdir()
    (place / "mixsweep-20261122-0930" / "mine").touch()
    (place / "mixsweep-file").touch()
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "lock").touch()
    (place / "mixsweep-link").symlink_to(place / "elsewhere")
    (place / "mixsweep-1-aaaa").mkdir()
    with temporary_folder(place):
        pass
    names = [
        "elsewhere",
        "mixsweep-20261122-0930",
        "mixsweep-file",
        "mixsweep-link",
        "mixsweep-notes",
    ]
    assert sorted(path.name for path in place.iterdir()) == names
    assert (place / "elsewhere" / "lock").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
def test_folders_of_another_user_are_left_alone(place: Path) -> None:
    (place / "mixsweep-1-aaaa").mkdir()
    (place / "mixsweep-1-aaaa" / "lock").touch()
    os.chown(place / "mixsweep-1-aaaa", 65534, 65534)
    with temporary_folder(place):
        pass
    assert (place / "mixsweep-1-aaaa" / "lock").exists()


def test_a_folder_that_is_collected_while_it_is_made_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, met = module.fcntl.flock, []

    def flock_too_late(lock: int, kind: int) -> None:
        if not met:
            met.append(lock)
            module.collect(place)
        flock(lock, kind)

    monkeypatch.setattr(module.fcntl, "flock", flock_too_late)
    with temporary_folder(place) as folder:
        assert met
        assert (folder / "lock").exists()


def test_each_prefix_is_collected_for_itself(place: Path, driver: "subprocess.Popen[str]") -> None:
    left = folder_of(driver)
    driver.kill()
    driver.wait()
    with temporary_folder(place, ".report.") as folder:
        assert folder.name.startswith(".report.")
        assert left.exists()
    with temporary_folder(place):
        assert not left.exists()
