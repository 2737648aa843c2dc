"""Temporary folders are private whatever the umask, and end with their process."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mixup_core import temporary as module
from mixup_core.temporary import (
    OutputError,
    left_folders,
    output_file,
    require_places,
    temporary_folder,
)
from tests.damages import NO_FILES

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
    return Path(driver.stdout.readline().strip())


@pytest.fixture
def left(driver: "subprocess.Popen[str]") -> Path:
    """Folder that a killed process has left."""
    folder = folder_of(driver)
    driver.kill()
    driver.wait()
    return folder


def test_a_temporary_folder_is_private_under_any_umask_and_removed_at_the_end(place: Path) -> None:
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


def test_a_full_disk_leaves_no_temporary_folder(place: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(OSError, match="lock"), temporary_folder(place):
            pytest.fail("made")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(place.iterdir())


def test_folders_of_killed_drivers_are_removed_and_those_of_living_ones_kept(
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


def digests(place: Path) -> dict[str, bytes]:
    return {
        f"{path.relative_to(place)} {path.lstat().st_mode:o}": (
            path.read_bytes() if path.is_file() else b""
        )
        for path in sorted(place.rglob("*"))
    }


def test_only_folders_created_by_mixsweep_are_removed(place: Path, left: Path) -> None:
    lock = (left / "lock").read_bytes()
    for name in ("mixsweep-paper", "mixsweep-1-aaaa~", "mixsweep-2-aaaa~", "mixsweep-notes"):
        (place / name).mkdir(mode=0o700)
        (place / name / "chapter").write_text("mine")
    (place / "mixsweep-paper" / "lock").touch()
    (place / "mixsweep-1-aaaa~" / "lock").touch()
    (place / "mixsweep-2-aaaa~" / "lock").write_text("not json")
    (place / "mixsweep-empty").mkdir()
    (place / "mixsweep-3-aaaa~").mkdir(mode=0o700)
    (place / "mixsweep-file").touch()
    shutil.copytree(left, place / "mixsweep-4-aaaa~")  # a copy of a folder that was ours
    shutil.copytree(left, place / "copy")
    (place / "mixsweep-5-aaaa~").symlink_to(left)
    (place / "mixsweep-6-aaaa~").mkdir()
    (place / "mixsweep-6-aaaa~" / "lock").symlink_to(left / "lock")
    left.rename(place / "mixsweep-kept")  # its user wants to look into it
    (place / "mixsweep-kept" / "lock").write_bytes(lock)
    before = digests(place)
    assert list(left_folders(place)) == []
    with temporary_folder(place):
        pass
    assert digests(place) == before


def test_a_folder_of_another_user_or_accessible_to_others_is_not_removed(
    place: Path, left: Path
) -> None:
    left.chmod(0o750)
    module.collect(place)
    assert left.exists()
    left.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(left, 65534, 65534)
        module.collect(place)
        assert left.exists()
        os.chown(left, 0, 0)
    module.collect(place)
    assert not left.exists()


def _link(path: Path) -> None:
    path.rename("target")
    path.symlink_to("target")


IN_THE_WAY = {**NO_FILES, "unreadable": _link}


def _is_own(path: Path) -> bool:
    return path.read_text().startswith("ours")


@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_special_files_are_never_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("out")
    path.write_text("ours")
    IN_THE_WAY[kind](path)
    before = path.lstat()
    entries = sorted(Path().iterdir())
    refusing = pytest.raises(OutputError, match="out: is no regular file ")
    with refusing, output_file(path, "ours", _is_own):
        pytest.fail("opened")
    assert os.path.samestat(path.lstat(), before)
    assert sorted(Path().iterdir()) == entries
    with pytest.raises(OutputError, match="out"):
        require_places(tmp_path, ["out"], is_own=True)


def test_another_file_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("mine")
    refused = pytest.raises(OutputError, match="is not ours and is not replaced; give another name")
    with refused, output_file(path, "ours", _is_own):
        pytest.fail("opened")
    refused = pytest.raises(OutputError, match="absent does not exist")
    with refused, output_file(tmp_path / "absent" / "out", "ours", _is_own):
        pytest.fail("opened")
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_the_same_kind_is_replaced_only_by_a_complete_one(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("ours, old")

    def write() -> None:
        with output_file(path, "ours", _is_own) as place:
            place.write_text("ours, n")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write()
    assert path.read_text() == "ours, old"
    assert list(tmp_path.iterdir()) == [path]
    with output_file(path, "ours", _is_own) as place:
        place.write_text("ours, new")
        assert path.read_text() == "ours, old"
    assert path.read_text() == "ours, new"
    assert list(tmp_path.iterdir()) == [path]


def test_places_below_a_link_and_of_files_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="figures: is not a folder"):
        require_places(tmp_path / "out", ["figures/a.svg"], is_own=True)
    require_places(tmp_path / "out" / "figures", ["a.svg"], is_own=False)
    (tmp_path / "out" / "table.csv").write_text("mine")
    require_places(tmp_path / "out", ["table.csv"], is_own=True)
    with pytest.raises(OutputError, match=r"table\.csv: was not written by this command"):
        require_places(tmp_path / "out", ["other.csv", "table.csv"], is_own=False)
