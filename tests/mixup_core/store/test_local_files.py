"""Local files: written completely or not at all, read only if regular, locked by their writer."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mixup_core.store.errors import StoreFullError, UnreadableError
from mixup_core.store.local_files import (
    is_locked,
    make_folder,
    open_lock,
    open_regular,
    read_regular,
    write_durably,
)
from tests.damages import NO_FILES, bound_by_modes
from tests.mixup_core.store.faulty_disk import FaultyDisk, at_each_step, calls_of

OLD, NEW = b"what was there", bytes(range(256)) * 5
NAMING = {True: "replace", False: "link"}
"""System call that gives a new file its name, for files that may or may not be overwritten."""

REASONS = {
    "a folder": "is no file",
    "a FIFO": "is no file",
    "a socket": "is no file",
    "a dangling link": "is a link that leads nowhere",
    "a link to itself": "is a link that leads nowhere",
    "unreadable": "denies access to its owner",
}


@pytest.fixture
def modest() -> Iterator[Path]:
    """Folder whose file modes bind even root."""
    with bound_by_modes() as folder:
        yield folder


@pytest.fixture(params=[True, False])
def overwrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def num_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_written_file_is_complete_and_private_and_leaves_no_temporary_file(
    tmp_path: Path, overwrite: bool, umask: int
) -> None:
    path = tmp_path / "a" / "b" / "file.bin"
    before, num = os.umask(umask), num_open()
    try:
        assert write_durably(path, NEW, overwrite=overwrite)
    finally:
        os.umask(before)
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["file.bin"]
    assert [mode(part) for part in (path, path.parent, path.parent.parent)] == [0o600] + [0o700] * 2
    assert num_open() == num


def test_content_name_and_folder_are_synced_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    path = tmp_path / "a" / "b" / "file"
    write = partial(write_durably, path, NEW, overwrite=overwrite)
    steps = ["write", "fsync", NAMING[overwrite], "fsync"]
    assert calls_of(monkeypatch, errno.EIO, write) == ["mkdir", "fsync"] * 2 + steps
    path.unlink()
    assert calls_of(monkeypatch, errno.EIO, write) == steps


def test_short_writes_are_continued_until_all_bytes_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    assert write_durably(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == NEW


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_fails_at_any_point_leaves_the_file_as_it_was_or_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool, code: int
) -> None:
    path, found = tmp_path / "file", []

    def prepare(_: str) -> None:
        path.unlink(missing_ok=True)
        if overwrite:
            path.write_bytes(OLD)

    def write(_: None) -> bool:
        return write_durably(path, NEW, overwrite=overwrite)

    for _, error in at_each_step(monkeypatch, code, prepare, write):
        content = path.read_bytes() if path.exists() else None
        if code == errno.EIO:
            assert isinstance(error, OSError)
            assert error.errno == errno.EIO
            assert str(tmp_path) in str(error)
        else:
            assert isinstance(error, StoreFullError)
            assert str(error) == f"disk full: {path} needs 1,280 bytes"
        found.append(content)
        assert names(tmp_path) == ["file"] * (content is not None)
    assert found == [OLD if overwrite else None] * (len(found) - 1) + [NEW]


def cleared_before(
    monkeypatch: pytest.MonkeyPatch, name: str, path: Path, times: int
) -> list[Path]:
    """Let another process remove the temporary file several times; return what was removed."""
    original, cleared = getattr(os, name), []

    def call(*arguments: Any, **named: Any) -> None:
        if len(cleared) < times:
            (new,) = path.parent.glob("*.tmp")
            new.unlink()
            cleared.append(new)
        original(*arguments, **named)

    monkeypatch.setattr(os, name, call)
    return cleared


def test_a_write_is_repeated_some_times_when_its_temporary_file_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    path = tmp_path / "file"
    with monkeypatch.context() as patch:
        cleared = cleared_before(patch, NAMING[overwrite], path, 100)
        with pytest.raises(FileNotFoundError):
            write_durably(path, NEW, overwrite=overwrite)
    assert len(cleared) == 6
    assert names(tmp_path) == []
    cleared = cleared_before(monkeypatch, NAMING[overwrite], path, 5)
    assert write_durably(path, NEW, overwrite=overwrite)
    assert path.read_bytes() == NEW
    assert len(set(cleared)) == 5
    assert all(new.name.startswith("file.") for new in cleared)


@pytest.mark.parametrize(
    ("module", "name", "code"),
    [
        (os, "link", errno.EPERM),
        (os, "link", errno.EOPNOTSUPP),
        (os, "link", errno.ENOSYS),
        (os, "fsync", errno.EINVAL),
        (os, "fsync", errno.EOPNOTSUPP),
        (fcntl, "flock", errno.EOPNOTSUPP),
    ],
)
def test_files_are_written_on_a_disk_without_hard_links_synced_folders_or_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, code: int
) -> None:
    path, real = tmp_path / "a" / "file", getattr(module, name)

    def refuse(*given: Any, **options: Any) -> None:
        if name == "fsync" and not stat.S_ISDIR(os.fstat(given[0]).st_mode):
            real(*given, **options)
            return
        raise OSError(code, "not on this disk")

    monkeypatch.setattr(module, name, refuse)
    assert write_durably(path, OLD, overwrite=False)
    assert not write_durably(path, NEW, overwrite=False)
    assert path.read_bytes() == OLD
    assert names(path.parent) == ["file"]
    assert not is_locked(path)


def test_a_file_is_read_up_to_a_limit_also_through_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(NEW)
    link.symlink_to(path)
    for name in (path, link):
        assert read_regular(name) == NEW
        assert read_regular(name, 7) == NEW[:7]
        assert read_regular(name, 0) == b""
        assert read_regular(name, 10_000) == NEW
        with open_regular(name) as file:
            assert file.read(3) + file.read() == NEW
            assert not file.writable()
            assert not os.get_inheritable(file.fileno())


@pytest.mark.parametrize("damage", NO_FILES)
def test_anything_but_a_regular_file_is_refused_with_its_type_and_closed(
    modest: Path, damage: str
) -> None:
    path = modest / "file"
    path.write_bytes(OLD)
    NO_FILES[damage](path)
    num = num_open()
    assert not is_locked(path)
    lock = [] if damage == "unreadable" else [open_lock]
    for read in (read_regular, open_regular, *lock):
        with pytest.raises(UnreadableError) as caught:
            read(path)
        assert str(caught.value) == REASONS[damage]
    assert num_open() == num


def locked(descriptor: int) -> bool:
    """Lock a file, and return whether it was free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_lock_file_is_created_private_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a" / "lock"
    descriptor = open_lock(path)
    assert not os.get_inheritable(descriptor)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    os.write(descriptor, OLD)
    os.close(descriptor)
    descriptor = open_lock(path)
    assert os.read(descriptor, 100) == OLD
    os.close(descriptor)


def test_is_locked_detects_a_held_lock_and_does_not_take_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    first, second = open_lock(path), open_lock(path)
    num = num_open()
    assert [is_locked(path), locked(first), is_locked(path)] == [False, True, True]
    assert not locked(second)
    os.close(first)
    assert not is_locked(path)
    assert num_open() == num - 1
    assert locked(second)
    os.close(second)


def test_a_lock_that_is_a_link_is_refused_and_its_target_is_not_changed(
    tmp_path: Path,
) -> None:
    target, path = tmp_path / "target", tmp_path / "lock"
    path.symlink_to(target)
    target.touch()
    target.chmod(0o640)
    with pytest.raises(UnreadableError, match=r"^is a link$"):
        open_lock(path)
    assert mode(target) == 0o640


def test_a_lock_file_without_permissions_is_made_accessible_to_its_owner(modest: Path) -> None:
    path = modest / "lock"
    path.touch(mode=0o000)
    assert not is_locked(path)
    descriptor = open_lock(path)
    assert mode(path) == 0o600
    assert locked(descriptor)
    assert is_locked(path)
    os.close(descriptor)


def test_a_lock_on_a_full_disk_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a" / "lock"
    with monkeypatch.context() as patch:
        FaultyDisk(patch, 1, errno.ENOSPC)
        with pytest.raises(StoreFullError) as caught:
            open_lock(path)
    assert str(caught.value) == f"disk full: {path} cannot be created"
    with monkeypatch.context() as patch:
        FaultyDisk(patch, 1, errno.EROFS)
        with pytest.raises(OSError, match="Read-only file system"):
            open_lock(path)


def test_files_in_a_folder_of_a_group_are_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    write_durably(tmp_path / "a" / "b" / "file", NEW)
    os.close(open_lock(tmp_path / "a" / "lock"))
    found = [mode(tmp_path / name) for name in ("a", "a/b", "a/b/file", "a/lock")]
    assert found == [0o2770, 0o2770, 0o660, 0o660]


@pytest.mark.parametrize("obstacle", ["a file", "a dangling link"])
@pytest.mark.parametrize("below", ["", "a", "a/b"])
def test_a_file_in_place_of_a_folder_is_refused_with_its_path(
    tmp_path: Path, obstacle: str, below: str
) -> None:
    path = tmp_path / "place"
    path.touch() if obstacle == "a file" else path.symlink_to("/nowhere/at/all")
    with pytest.raises(NotADirectoryError) as caught:
        make_folder(path / below)
    assert caught.value.filename == str(path)
    assert caught.value.errno == errno.ENOTDIR
