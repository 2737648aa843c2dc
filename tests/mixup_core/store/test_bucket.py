"""Bucket: objects on a server; every error of the server becomes one line."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from mixup_core.store.bucket import Bucket
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError, StoreFullError
from mixup_core.store.files import open_files
from tests.object_stores import NAMES, forget_clients

NOBODY = "http://127.0.0.1:9"

in_buckets = pytest.mark.parametrize("url", ["memory", *NAMES], indirect=True)


@pytest.fixture
def bucket(url: str) -> Bucket:
    files = open_files(url)
    assert isinstance(files, Bucket)
    return files


@in_buckets
def test_an_object_reads_back_as_last_written(bucket: Bucket) -> None:
    content = bytes(range(256)) * 40
    for data in (content, b"", content[::-1]):
        bucket.write("a/b/object", data)
        assert bucket.read("a/b/object") == data
        assert (bucket.has("a/b/object"), bucket.size("a/b/object")) == (True, len(data))
    assert -60 < bucket.age("a/b/object") < 600
    assert not bucket.is_being_written("a/b/object")


@in_buckets
def test_a_missing_object_is_not_found_and_removing_it_succeeds(bucket: Bucket) -> None:
    bucket.write("a/object", b"1")
    for name in ("a/other", "a/object/below", "b/object"):
        with pytest.raises(FileNotFoundError):
            bucket.read(name)
        assert bucket.size(name) is None
        assert bucket.age(name) == 0.0
        bucket.remove(name)
    assert not bucket.has("a/other")
    assert (bucket.is_taken("a/other"), bucket.is_taken("a/object")) == (False, True)
    assert list(bucket.names("b")) == []
    with pytest.raises(FileNotFoundError):
        bucket.move("a/other", "a/another")
    bucket.remove("a/object")
    assert list(bucket.names("a")) == []


@in_buckets
def test_listing_a_folder_returns_only_the_objects_below_the_folder(bucket: Bucket) -> None:
    names = ["stages/aa/aa01.json", "stages/bb/bb01.json", "stages/top.json", "states/aa/aa01.bin"]
    for name in names:
        bucket.write(name, b"1")
    assert sorted(bucket.names("stages")) == names[:3]
    assert list(bucket.names("stages/aa")) == names[:1]
    assert list(bucket.names("states")) == names[3:]


@in_buckets
def test_a_prefix_of_object_names_is_not_an_object(bucket: Bucket) -> None:
    bucket.write("a/b/object", b"1")
    for name in ("a", "a/b", "a/b/obj"):
        assert (bucket.has(name), bucket.size(name)) == (False, None)
    assert bucket.create("a/b/obj", b"2")


@in_buckets
def test_a_moved_object_exists_only_under_its_new_name(bucket: Bucket) -> None:
    bucket.write("a/one", b"1")
    bucket.write("b/two", b"2")
    bucket.move("a/one", "b/two")
    assert list(bucket.names("a")) == []
    assert list(bucket.names("b")) == ["b/two"]
    assert bucket.read("b/two") == b"1"


@in_buckets
def test_existing_objects_are_read_at_any_batch_size(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {f"a/{number}": b"%d" % number for number in range(5)}
    for name, data in there.items():
        bucket.write(name, data)
    asked = [*there, "a/none", "b/none"][::-1]
    for batch in (1, 2, 7, 256):
        monkeypatch.setattr("mixup_core.store.bucket._BATCH", batch)
        assert dict(bucket.read_present(iter(asked))) == there
    assert dict(bucket.read_present([])) == {}
    assert dict(bucket.read_present(["b/none"])) == {}


@in_buckets
@pytest.mark.parametrize("name", ["a*", "a?", "results[2026]", "**", "{a,b}"])
def test_a_name_is_taken_literally(bucket: Bucket, url: str, name: str) -> None:
    beside = open_files(f"{url}/ab")
    beside.write("object", b"other")
    bucket.write("ab2/object", b"other")
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


@in_buckets
def test_create_succeeds_only_when_the_object_is_missing(bucket: Bucket) -> None:
    assert bucket.create("a/object", b"1")
    assert not bucket.create("a/object", b"2")
    assert bucket.read("a/object") == b"1"


def test_creating_an_object_twice_with_equal_content_succeeds(
    s3: Mapping[str, str], tmp_path: Path
) -> None:
    """A put may be sent again because its answer was lost; the server cannot tell."""
    bucket = open_files(f"s3://studies{tmp_path}")
    assert isinstance(bucket, Bucket)
    assert bucket.creates_atomically
    assert bucket.create("a/object", b"1")
    assert bucket.create("a/object", b"1")


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


def test_an_unreachable_server_raises_a_store_error(
    s3: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOBODY)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    forget_clients()
    with pytest.raises(StoreError, match="s3://studies"):
        Store("s3://studies/gone").read_all(["aa01", "bb02"])
    bucket = open_files("s3://studies/gone")
    assert isinstance(bucket, Bucket)
    for use in USES.values():
        with pytest.raises(StoreError, match=r"^s3://studies/gone: .*127\.0\.0\.1:9") as caught:
            use(bucket)
        assert len(str(caught.value).splitlines()) == 1
        assert not isinstance(caught.value, StoreFullError)
    forget_clients()


def test_a_missing_bucket_raises_a_store_error(s3: Mapping[str, str]) -> None:
    bucket = open_files("s3://no-such-bucket/store")
    assert isinstance(bucket, Bucket)
    for use in ("names", "write", "create"):
        with pytest.raises(StoreError, match=r"^s3://no-such-bucket/store: no such bucket$"):
            USES[use](bucket)


def test_a_full_bucket_raises_a_store_full_error(s3: Mapping[str, str]) -> None:
    bucket = open_files("s3://full/store")
    assert isinstance(bucket, Bucket)
    for use in ("write", "create"):
        with pytest.raises(StoreFullError) as caught:
            USES[use](bucket)
        assert str(caught.value) == "s3://full/store: full, or over its quota (QuotaExceeded)"
    assert list(bucket.names("a")) == []


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
            for code in
            ("QuotaExceeded", "InsufficientStorage", "StorageFull", "XMinioStorageFull")
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


def test_a_failed_read_of_one_of_many_objects_raises_an_error() -> None:
    class Lossy(MemoryFileSystem):
        def cat_ranges(self, *_: object, **__: object) -> list[object]:
            return [b"1", FileNotFoundError(), TimeoutError("no answer")]

    found = Bucket(Lossy(), "/root", "url").read_present(["a", "b", "c"])
    assert next(found) == ("a", b"1")
    with pytest.raises(StoreError, match=r"^url: no answer$"):
        next(found)
