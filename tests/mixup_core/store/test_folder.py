"""Folder: the files of a store on a disk, with other files among them."""

import os
import stat
import time
from pathlib import Path
from shutil import rmtree

import pytest

from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.folder import Folder
from tests.damages import DAMAGES, NO_FILES, bound_by_modes


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "store")


def contents(folder: Folder, top: str) -> dict[str, bytes]:
    return {name: folder.read(name) for name in folder.names(top)}


def test_listing_a_folder_returns_only_the_files_below_and_nothing_when_missing(
    folder: Folder,
) -> None:
    names = ["stages/aa/aa01.json", "stages/bb/bb01.json", "stages/top.json", "states/aa/aa01.bin"]
    assert list(folder.names("stages")) == []
    for name in names:
        folder.write(name, name.encode())
    assert sorted(folder.names("stages")) == names[:3]
    assert list(folder.names("stages/aa")) == names[:1]
    assert list(folder.names("states")) == names[3:]
    assert list(folder.names("stages/cc")) == []
    assert contents(folder, "states") == {names[3]: names[3].encode()}
    folder.write("top.json", b"")
    assert sorted(folder.names("")) == [*names, "top.json"]


def test_a_folder_with_the_suffix_of_a_file_is_listed_as_one_file(
    folder: Folder,
) -> None:
    folder.write("stages/aa/aa01.json", b"1")
    folder.write("stages/aa/aa02.json/notes.txt", b"of a colleague")
    assert sorted(folder.names("stages")) == ["stages/aa/aa01.json", "stages/aa/aa02.json"]


def test_links_are_listed_and_not_followed(folder: Folder) -> None:
    folder.write("stages/aa/aa01.json", b"1")
    (folder.root / "stages/aa/aa02.json").symlink_to("/nowhere/at/all")
    (folder.root / "elsewhere").mkdir()
    (folder.root / "elsewhere/aa03.json").touch()
    (folder.root / "stages/bb").symlink_to(folder.root / "elsewhere")
    assert sorted(folder.names("stages")) == ["stages/aa/aa01.json", "stages/aa/aa02.json"]


@pytest.mark.parametrize("obstacle", ["a dangling link", "a FIFO", "unreadable", "empty"])
@pytest.mark.parametrize("place", ["stages", "stages/aa"])
def test_a_folder_that_cannot_be_listed_raises_an_os_error(obstacle: str, place: str) -> None:
    with bound_by_modes() as modest:
        path = modest / place
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if obstacle == "unreadable" else path.touch()
        DAMAGES[obstacle](path)
        with pytest.raises(OSError, match=rf"{place}'$"):
            list(Folder(modest).names(place))
        if obstacle == "unreadable":
            path.chmod(0o700)  # or nobody but root could clear up


def test_existing_files_are_read_in_the_given_order(folder: Folder) -> None:
    for name in ("b", "a", "c"):
        folder.write(f"stages/{name}.json", name.encode())
    (folder.root / "stages/a.json").unlink()
    (folder.root / "stages/a.json").mkdir()
    asked = iter([f"stages/{name}.json" for name in "cabx"])
    found = list(folder.read_present(asked))
    assert [name for name, _ in found] == [f"stages/{name}.json" for name in "cab"]
    assert (found[0][1], found[2][1]) == (b"c", b"b")
    assert isinstance(found[1][1], UnreadableError)
    assert str(found[1][1]) == "is no file"
    with pytest.raises(UnreadableError, match="is no file"):
        folder.read("stages/a.json")
    with pytest.raises(FileNotFoundError):
        folder.read("stages/x.json")


def test_has_and_size_find_only_files_and_links_to_files(folder: Folder) -> None:
    folder.write("a/file", b"12345")
    (folder.root / "a/link").symlink_to("file")
    (folder.root / "a/dangling").symlink_to("nothing")
    (folder.root / "a/folder").mkdir()
    for name in ("a/file", "a/link"):
        assert (folder.has(name), folder.size(name)) == (True, 5)
    for name in ("a/dangling", "a/folder", "a/nothing", "b/nothing"):
        assert (folder.has(name), folder.size(name)) == (False, None)


@pytest.mark.parametrize("change", ["deleted", "moved"])
def test_a_deleted_root_is_not_created_again(folder: Folder, change: str) -> None:
    folder.write("a/file", b"1")
    (folder.root / "a" / "file").unlink()
    other = Folder(folder.root)
    folder.root.rename(folder.root.with_name("x")) if change == "moved" else rmtree(folder.root)
    for known in (folder, other):
        with pytest.raises(StoreError, match="was moved or deleted, so nothing is written there"):
            known.write("a/file", b"2")
    assert not folder.root.exists()
    Folder(folder.root).write("a/file", b"3")


def test_remove_deletes_a_file_or_a_link_and_ignores_a_missing_file(folder: Folder) -> None:
    folder.write("a/file", b"1")
    (folder.root / "a/link").symlink_to("file")
    folder.remove("a/link")
    assert list(folder.names("a")) == ["a/file"]
    folder.remove("a/file")
    folder.remove("a/file")
    folder.remove("b/file")
    assert list(folder.names("a")) == []


def test_a_moved_file_replaces_an_existing_file_in_a_private_folder(folder: Folder) -> None:
    folder.write("a/one", b"1")
    folder.move("a/one", "b/c/one")
    folder.write("a/one", b"2")
    folder.move("a/one", "b/c/one")
    assert contents(folder, "b") == {"b/c/one": b"2"}
    assert list(folder.names("a")) == []
    assert stat.S_IMODE((folder.root / "b/c").stat().st_mode) == 0o700
    with pytest.raises(FileNotFoundError):
        folder.move("a/one", "b/c/one")
    assert folder.read("b/c/one") == b"2"


def test_moving_a_link_does_not_move_its_target(folder: Folder) -> None:
    folder.write("a/file", b"1")
    (folder.root / "a/folder").mkdir()
    for number, target in enumerate(("file", "nothing", "folder")):
        (folder.root / f"a/link{number}").symlink_to(target)
        folder.write("b/link", b"in the way")
        folder.move(f"a/link{number}", "b/link")
        assert (folder.root / "b/link").readlink() == Path(target)
        (folder.root / "b/link").unlink()
    assert folder.read("a/file") == b"1"
    assert (folder.root / "a/folder").is_dir()


def test_a_file_moved_onto_a_folder_gets_the_next_free_number(folder: Folder) -> None:
    (folder.root / "b/name").mkdir(parents=True)
    (folder.root / "b/name.1").mkdir()
    folder.write("a/file", b"1")
    folder.move("a/file", "b/name")
    assert folder.read("b/name.2") == b"1"
    folder.write("a/file", b"2")
    folder.move("a/file", "b/name")
    assert folder.read("b/name.2") == b"2", "a file takes the place of one"


@pytest.mark.parametrize("obstacle", NO_FILES)
def test_a_name_is_taken_by_anything_and_not_only_by_a_file(folder: Folder, obstacle: str) -> None:
    folder.write("b/name", b"1")
    assert folder.is_taken("b/name")
    NO_FILES[obstacle](folder.root / "b/name")
    assert folder.is_taken("b/name")
    assert not folder.is_taken("b/other")


@pytest.mark.parametrize("obstacle", ["a file", "a dangling link", "a folder"])
def test_a_moved_folder_never_replaces_an_existing_entry(folder: Folder, obstacle: str) -> None:
    folder.write("b/name", b"1")
    if obstacle != "a file":
        NO_FILES[obstacle](folder.root / "b/name")
    folder.write("a/folder.json/notes.txt", b"of a colleague")
    folder.move("a/folder.json", "b/name")
    assert folder.read("b/name.1/notes.txt") == b"of a colleague"
    assert not (folder.root / "a/folder.json").exists()
    assert os.path.lexists(folder.root / "b/name")
    if obstacle == "a file":
        assert folder.read("b/name") == b"1"


def test_the_age_of_a_link_is_not_the_age_of_its_target(folder: Folder) -> None:
    folder.write("a/file", b"1")
    assert 0 <= folder.age("a/file") < 600
    hour_ago = time.time() - 3600
    os.utime(folder.root / "a/file", (hour_ago, hour_ago))
    assert 3600 <= folder.age("a/file") < 4200
    for link, target in (("a/link", "file"), ("a/dangling", "nothing")):
        (folder.root / link).symlink_to(target)
        assert 0 <= folder.age(link) < 600
    assert folder.age("a/nothing") == 0.0
