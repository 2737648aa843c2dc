"""Files of a store: a folder with other files among them, and a bucket that may refuse."""

import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from mixup_core.store.errors import StoreError, StoreFullError
from mixup_core.store.files import Bucket, Files, Folder, open_files
from tests.damages import DAMAGES, bound_by_modes
from tests.object_stores import NAMES


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "store")


def test_folders_named_like_files_and_links_are_listed_like_files_and_not_entered(
    folder: Folder,
) -> None:
    folder.write("stages/aa/aa01.json", b"1")
    folder.write("stages/aa/aa02.json/notes.txt", b"of a colleague")
    (folder.root / "stages/aa/aa03.json").symlink_to("/nowhere/at/all")
    (folder.root / "elsewhere").mkdir()
    (folder.root / "elsewhere/aa04.json").touch()
    (folder.root / "stages/bb").symlink_to(folder.root / "elsewhere")
    listed = [f"stages/aa/aa0{number}.json" for number in (1, 2, 3)]
    assert sorted(folder.names("stages")) == listed


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


def test_has_and_size_find_only_files_and_links_to_files(folder: Folder) -> None:
    folder.write("a/file", b"12345")
    (folder.root / "a/link").symlink_to("file")
    (folder.root / "a/dangling").symlink_to("nothing")
    (folder.root / "a/folder").mkdir()
    for name in ("a/file", "a/link"):
        assert (folder.has(name), folder.size(name)) == (True, 5)
    for name in ("a/dangling", "a/folder", "a/nothing", "b/nothing"):
        assert (folder.has(name), folder.size(name)) == (False, None)
    taken = [folder.is_taken(f"a/{name}") for name in ("file", "dangling", "folder", "nothing")]
    assert taken == [True, True, True, False]


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


def test_a_file_is_moved_into_a_private_folder(folder: Folder) -> None:
    folder.write("a/one", b"1")
    folder.move("a/one", "b/c/one")
    assert stat.S_IMODE((folder.root / "b/c").stat().st_mode) == 0o700


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


in_all = pytest.mark.parametrize("url", ["folder", "memory", *NAMES], indirect=True)
in_buckets = pytest.mark.parametrize("url", ["memory", *NAMES], indirect=True)


@pytest.fixture
def files(url: str) -> Files:
    return open_files(url)


@in_all
def test_a_file_reads_back_as_last_written(files: Files) -> None:
    content = bytes(range(256)) * 40
    for data in (content, b"", content[::-1]):
        files.write("a/b/object", data)
        assert files.read("a/b/object") == data
        assert (files.has("a/b/object"), files.size("a/b/object")) == (True, len(data))
    assert -60 < files.age("a/b/object") < 600
    assert not files.is_being_written("a/b/object")


@in_all
def test_a_missing_file_is_not_found_and_removing_it_succeeds(files: Files) -> None:
    files.write("a/object", b"1")
    for name in ("a/other", "b/object"):
        with pytest.raises(FileNotFoundError):
            files.read(name)
        assert files.size(name) is None
        assert files.age(name) == 0.0
        files.remove(name)
    assert not files.has("a/other")
    assert (files.is_taken("a/other"), files.is_taken("a/object")) == (False, True)
    assert list(files.names("b")) == []
    with pytest.raises(FileNotFoundError):
        files.move("a/other", "a/another")
    files.remove("a/object")
    assert list(files.names("a")) == []


@in_all
def test_listing_a_folder_returns_only_the_files_below_the_folder(files: Files) -> None:
    names = ["stages/aa/aa01.json", "stages/bb/bb01.json", "stages/top.json", "states/aa/aa01.bin"]
    assert list(files.names("stages")) == []
    for name in names:
        files.write(name, b"1")
    assert sorted(files.names("stages")) == names[:3]
    assert list(files.names("stages/aa")) == names[:1]
    assert list(files.names("states")) == names[3:]
    assert list(files.names("stages/cc")) == []
    files.write("top.json", b"")
    assert sorted(files.names("")) == [*names, "top.json"]


@in_buckets
def test_a_prefix_of_object_names_is_not_an_object(files: Files) -> None:
    files.write("a/b/object", b"1")
    for name in ("a", "a/b", "a/b/obj", "a/b/object/below"):
        assert (files.has(name), files.size(name)) == (False, None)
    files.remove("a/b/object/below")
    assert files.create("a/b/obj", b"2")


@in_all
def test_a_moved_file_exists_only_under_its_new_name(files: Files) -> None:
    files.write("a/one", b"1")
    files.write("b/two", b"2")
    files.move("a/one", "b/two")
    assert list(files.names("a")) == []
    assert list(files.names("b")) == ["b/two"]
    assert files.read("b/two") == b"1"


@in_all
def test_existing_files_are_read_at_any_batch_size(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {f"a/{number}": b"%d" % number for number in range(5)}
    for name, data in there.items():
        files.write(name, data)
    asked = [*there, "a/none", "b/none"][::-1]
    for batch in (1, 2, 7, 256):
        monkeypatch.setattr("mixup_core.store.files._BATCH", batch)
        assert list(files.read_present(iter(asked))) == list(there.items())[::-1]
    assert dict(files.read_present([])) == {}
    assert dict(files.read_present(["b/none"])) == {}


@in_buckets
@pytest.mark.parametrize("name", ["a*", "a?", "results[2026]", "**", "{a,b}"])
def test_a_name_is_taken_literally(files: Files, url: str, name: str) -> None:
    beside = open_files(f"{url}/ab")
    beside.write("object", b"other")
    files.write("ab2/object", b"other")
    odd = open_files(f"{url}/{name}")
    assert dict(odd.read_present(["object"])) == {}
    odd.write("object", b"1")
    odd.write(f"{name}/x", b"2")
    assert sorted(odd.names("")) == sorted(["object", f"{name}/x"])
    assert dict(odd.read_present(["object", f"{name}/x", f"{name}x"])) == {
        "object": b"1",
        f"{name}/x": b"2",
    }
    odd.move("object", f"{name}/y")
    odd.remove(f"{name}/x")
    assert dict(odd.read_present(["object", f"{name}/x", f"{name}/y"])) == {f"{name}/y": b"1"}
    assert beside.read("object") == b"other"


def test_reading_many_objects_sends_one_request_for_each_existing_or_missing_object(
    s3: Mapping[str, str], tmp_path: Path
) -> None:
    bucket = open_files(f"s3://studies{tmp_path}")
    for name in ("a/1", "a/2"):
        bucket.write(name, b"1")
    sent: list[str] = []
    client = fsspec.filesystem("s3", use_listings_cache=False).s3  # the bucket's own, which is kept
    client.meta.events.register("before-call.s3", lambda model, **_: sent.append(model.name))
    assert len(dict(bucket.read_present(["a/1", "a/2", "a/none"]))) == 2
    assert sent == ["GetObject"] * 3


@in_all
def test_create_succeeds_only_when_the_file_is_missing(files: Files) -> None:
    assert files.create("a/object", b"1")
    assert not files.create("a/object", b"2")
    assert files.read("a/object") == b"1"


@pytest.mark.parametrize(
    ("protocol", "is_atomic"),
    [
        ("s3", True),
        (("gcs", "gs"), True),
        (["abfs"], True),
        ("memory", False),
        (("ftp", "s"), False),
    ],
)
def test_atomic_creation_is_recognised_from_the_protocol(protocol: Any, is_atomic: bool) -> None:
    class Files(MemoryFileSystem):
        cachable = False

    files = Files()
    files.protocol = protocol
    assert Bucket(files, "/root", "url").creates_atomically == is_atomic


def test_trailing_slashes_of_the_url_do_not_change_names(tmp_path: Path) -> None:
    files = MemoryFileSystem()
    Bucket(files, f"{tmp_path}/slash//", "url").write("a/b", b"1")
    plain = Bucket(files, f"{tmp_path}/slash", "url")
    assert plain.read("a/b") == b"1"
    for bucket in (plain, Bucket(files, f"{tmp_path}/slash/", "url")):
        assert list(bucket.names("a")) == ["a/b"]
    plain.remove("a/b")


USES: Mapping[str, Callable[[Bucket], object]] = {
    "names": lambda bucket: list(bucket.names("a")),
    "read": lambda bucket: bucket.read("a/b"),
    "read_present": lambda bucket: list(bucket.read_present(["a/b", "a/c"])),
    "has": lambda bucket: bucket.has("a/b"),
    "is_taken": lambda bucket: bucket.is_taken("a/b"),
    "size": lambda bucket: bucket.size("a/b"),
    "write": lambda bucket: bucket.write("a/b", b"1"),
    "create": lambda bucket: bucket.create("a/b", b"1"),
    "move": lambda bucket: bucket.move("a/b", "a/c"),
    "remove": lambda bucket: bucket.remove("a/b"),
    "age": lambda bucket: bucket.age("a/b"),
}
"""Each method that contacts a server."""


class Failing(MemoryFileSystem):
    """Objects in memory whose server fails, possibly after it has done part of the operation.

    This simulates fsspec packages whose servers cannot run here.
    """

    cachable = False

    def __init__(self, error: Exception, *, puts: bytes | None = None) -> None:
        super().__init__()
        self.store, self.pseudo_dirs = {}, [""]
        self._error, self._puts = error, puts

    def _fail(self, *_: object, **__: object) -> Any:
        raise self._error

    find = info = rm_file = cp_file = modified = _fail

    def cat_file(self, path: str, **_: object) -> bytes:
        if path not in self.store:
            raise self._error
        return bytes(super().cat_file(path))

    def pipe_file(self, path: str, value: bytes, **_: object) -> None:
        if self._puts is not None:
            super().pipe_file(path, self._puts)
        raise self._error

    def cat_ranges(self, paths: list[str], *_: object, **__: object) -> list[Exception]:
        return [self._error] * len(paths)


def answered(error: Exception, code: str | None = None) -> Exception:
    """Return an error that has the server's response attached, as botocore does."""
    error.response = {"Error": {"Code": code} if code else {}}  # type: ignore[attr-defined]
    return error


def caused_by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "text", "kind"),
    [
        (OSError("the server\n  said\tno "), "url: the server said no", StoreError),
        (RuntimeError(), "url: RuntimeError", StoreError),
        (ValueError(" \n"), "url: ValueError", StoreError),
        (answered(OSError("slow"), "SlowDown"), "url: slow", StoreError),
        (answered(OSError("slow")), "url: slow", StoreError),
        (PermissionError("Access\nDenied"),
         "url: the server refuses these credentials (Access Denied)", StoreError),
        (caused_by(PermissionError("Forbidden"), answered(OSError(), "InvalidAccessKeyId")),
         "url: the server refuses these credentials (InvalidAccessKeyId)", StoreError),
        *(
            (caused_by(OSError("full"), answered(OSError(), code)),
             f"url: full, or over its quota ({code})", StoreFullError)
            for code in ("InsufficientStorage", "StorageFull", "XMinioStorageFull")
        ),
        (answered(PermissionError("over quota"), "QuotaExceeded"),
         "url: full, or over its quota (QuotaExceeded)", StoreFullError),
    ],
)  # fmt: skip
def test_every_error_of_a_storage_package_is_reported_in_one_line(
    error: Exception, text: str, kind: type[Exception]
) -> None:
    for use in USES.values():
        with pytest.raises(StoreError) as caught:
            use(Bucket(Failing(error), "/root", "url"))
        assert str(caught.value) == text
        assert type(caught.value) is kind
        assert caught.value.__cause__ is error


def atomic(files: MemoryFileSystem) -> Bucket:
    files.protocol = ("s3",)
    return Bucket(files, "/root", "url")


@pytest.mark.parametrize(
    "error", [FileExistsError("there"), OSError("412"), ConnectionError("lost"), RuntimeError("?")]
)
def test_after_a_refused_create_the_stored_content_decides_the_winner(error: Exception) -> None:
    assert atomic(Failing(error, puts=b"1")).create("a/b", b"1"), "the answer was lost"
    assert not atomic(Failing(error, puts=b"2")).create("a/b", b"1"), "another was first"


def test_a_refused_create_is_reported_when_no_object_is_stored() -> None:
    class Gone(Failing):
        def cat_file(self, path: str, **_: object) -> bytes:
            raise FileNotFoundError(path)

    error = OSError("busy")
    with pytest.raises(StoreError, match=r"^url: busy$") as caught:
        atomic(Gone(error)).create("a/b", b"1")
    assert caught.value.__cause__ is error
    with pytest.raises(StoreError, match=r"^url: no such bucket$"):
        atomic(Gone(FileNotFoundError("no bucket"))).create("a/b", b"1")
    with pytest.raises(StoreError, match=r"^url: the object a/b exists but cannot be read$"):
        atomic(Gone(FileExistsError("there"))).create("a/b", b"1")


def test_a_path_opens_an_absolute_folder_without_creating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schemes = [f"{scheme}{tmp_path}/store/" for scheme in ("", "file://", "local://")]
    for url in ("store", "./store", "home/../store", *schemes):
        files = open_files(url)
        assert isinstance(files, Folder)
        assert files.root.resolve() == tmp_path / "store"
        assert files.root.is_absolute()
        assert list(files.names("stages")) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("nowhere://store", "nowhere://store: Protocol not known: nowhere"),
        ("clouds://a/b", "clouds://a/b: Install no_such_package"),
    ],
)
def test_a_url_without_a_package_for_its_protocol_is_refused(
    url: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"class": "no_such_package.Files", "err": "Install no_such_package"}
    monkeypatch.setitem(known_implementations, "clouds", missing)
    with pytest.raises(StoreError) as caught:
        open_files(url)
    assert str(caught.value) == text
    assert caught.value.__cause__ is not None


def test_files_that_another_machine_writes_after_a_listing_are_found(url: str) -> None:
    files = open_files(url)
    files.write("stages/aa/aa01.json", b"1")
    assert list(files.names("stages")) == ["stages/aa/aa01.json"]
    elsewhere, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    elsewhere.pipe_file(f"{root}/stages/aa/aa02.json", b"2")
    assert files.read("stages/aa/aa02.json") == b"2"
    assert files.has("stages/aa/aa02.json")
    assert sorted(files.names("stages")) == [f"stages/aa/aa0{number}.json" for number in (1, 2)]
    assert files.size("stages/aa/aa02.json") == 1
