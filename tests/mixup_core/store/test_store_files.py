"""Store files: a path or a URL opens a folder or a bucket, without creating or reading anything."""

from pathlib import Path

import fsspec
import pytest
from fsspec.registry import known_implementations

from mixup_core.store.bucket import Bucket
from mixup_core.store.errors import StoreError
from mixup_core.store.files import open_files
from mixup_core.store.folder import Folder


@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_a_path_opens_a_folder_without_creating_it(tmp_path: Path, scheme: str) -> None:
    files = open_files(f"{scheme}{tmp_path}/home/store")
    assert isinstance(files, Folder)
    assert files.root == tmp_path / "home" / "store"
    assert list(files.names("stages")) == []
    assert list(tmp_path.iterdir()) == []


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("store", "./store", "home/../store", f"{tmp_path}/store/"):
        files = open_files(url)
        assert isinstance(files, Folder)
        assert files.root.resolve() == tmp_path / "store"
        assert files.root.is_absolute()


def test_other_urls_open_a_bucket_without_contacting_a_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("s3fs", reason="s3fs is not installed: NOT TESTED on S3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for url in ("s3://studies/store", f"memory:/{tmp_path}"):
        assert isinstance(open_files(url), Bucket)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("nowhere://store", "nowhere://store: Protocol not known: nowhere"),
        ("s4://bucket/store", "s4://bucket/store: Protocol not known: s4"),
    ],
)
def test_a_url_with_an_unknown_protocol_is_refused(url: str, text: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_files(url)
    assert str(caught.value) == text
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_url_with_a_missing_package_is_refused_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = {"class": "no_such_package.Files", "err": "Install no_such_package"}
    monkeypatch.setitem(known_implementations, "clouds", missing)
    with pytest.raises(StoreError, match=r"^clouds://a/b: Install no_such_package$"):
        open_files("clouds://a/b")


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
