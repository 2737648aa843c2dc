"""Fetching: sources are tried in turn, files are verified, and none is left half done.

No network.
"""

import dataclasses
import gzip
import hashlib
import shutil
import socket
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torchvision.datasets
from torchvision.datasets import CIFAR100

from mixup_core.images.data import sources as sources_module
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.fetching import (
    checksums,
    data_root,
    fetch,
    files_of,
    is_present,
    statuses,
)
from mixup_core.images.data.sets import DATASETS, fashion_mnist, mnist
from mixup_core.images.data.sources import unpacked
from tests.mixup_core.small_files import tar

REFUSING = "http://127.0.0.1:9/"


@dataclasses.dataclass
class Sources:
    """Replacements of all download sources of Fashion-MNIST; by default none has the file."""

    mirror: Path
    debian: Path
    contents: dict[str, bytes]

    def publish(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name, content in self.contents.items():
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
    contents = {}
    for split in files_of("fashion-mnist").values():
        for path in tuple(split):
            content = f"content of {path}".encode()
            contents[Path(path).name] = content
            monkeypatch.setitem(split, path, f"sha256:{hashlib.sha256(content).hexdigest()}")
    found = Sources(tmp_path / "mirror", tmp_path / "debian", contents)
    mirrors = [REFUSING, found.mirror.as_uri() + "/"]
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", mirrors)
    monkeypatch.setattr(fashion_mnist, "DEBIAN_FOLDER", found.debian)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def fetched(root: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (root / "FashionMNIST" / "raw").iterdir()}


def visible(root: Path) -> list[Path]:
    return [file for file in root.rglob("*") if not file.name.endswith(".lock")]


def test_the_data_root_is_the_environment_variable_or_the_user_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.delenv("MIXSWEEP_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_root() == Path("/h/.cache/mixsweep/datasets")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert data_root() == Path("/c/mixsweep/datasets")
    monkeypatch.setenv("MIXSWEEP_DATA", "/d")
    assert data_root() == Path("/d")
    monkeypatch.setenv("MIXSWEEP_DATA", "here")
    assert data_root() == Path.cwd() / "here"


def test_the_next_mirror_is_used_when_the_first_refuses(sources: Sources, root: Path) -> None:
    sources.publish(sources.mirror)
    sources.publish(sources.debian)
    assert fetch("fashion-mnist", root) == sources.mirror.as_uri() + "/"
    assert fetched(root) == sources.contents


def write_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    (folder / name).chmod(0o755)


def test_the_package_is_downloaded_and_unpacked_without_installing(
    sources: Sources, root: Path, tmp_path: Path
) -> None:
    inside = sources.debian.relative_to("/")
    sources.publish(tmp_path / "content" / inside)
    programs = tmp_path / "no-programs"
    write_program(programs, "apt-get", '[ "$1" = download ] && touch dataset.deb')
    write_program(programs, "dpkg-deb", f'[ "$2" = dataset.deb ] && cp -r {tmp_path}/content "$3"')
    assert fetch("fashion-mnist", root) == "Debian package dataset-fashion-mnist, downloaded"
    assert fetched(root) == sources.contents


def test_when_every_source_fails_the_error_lists_each_reason_and_the_manual_steps(
    sources: Sources, root: Path, tmp_path: Path
) -> None:
    complaint = "E: Unable to locate package dataset-fashion-mnist"
    write_program(tmp_path / "no-programs", "apt-get", f"echo '{complaint}' >&2; exit 100")
    with pytest.raises(DataError) as caught:
        fetch("fashion-mnist", root)
    lines = str(caught.value).splitlines()
    for line, said in zip(lines, [
        ("fashion-mnist: the download failed from every source.",), ("refused",), ("mirror",),
        ("installed",), (complaint, "apt-get update"),
        ("apt-get install dataset-fashion-mnist", "MIXSWEEP_DATA"),
    ], strict=True):  # fmt: skip
        assert all(part in line for part in said)
    assert not visible(root)


def test_a_mirror_that_does_not_answer_times_out(
    sources: Sources, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources.publish(sources.debian)
    monkeypatch.setattr(sources_module, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mirror = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", [mirror])
        start = time.monotonic()
        assert fetch("fashion-mnist", root) == "Debian package dataset-fashion-mnist, installed"
        assert time.monotonic() - start < 2
    assert fetched(root) == sources.contents


@pytest.mark.parametrize("damage", ["cut short", "other content", "not gzip", "absent"])
def test_a_damaged_download_is_not_installed(damage: str, sources: Sources, root: Path) -> None:
    sources.publish(sources.mirror)
    archive = sources.mirror / "t10k-labels-idx1-ubyte.gz"
    whole = archive.read_bytes()
    damaged = {"cut short": whole[:-9], "other content": gzip.compress(b"?"), "not gzip": b"<html>"}
    archive.unlink()
    if damage in damaged:
        archive.write_bytes(damaged[damage])
    with pytest.raises(DataError):
        fetch("fashion-mnist", root)
    assert not visible(root)
    archive.write_bytes(whole)
    fetch("fashion-mnist", root)
    assert fetched(root) == sources.contents


def test_a_gzip_bomb_is_stopped(
    sources: Sources, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mnist, "MAX_UNPACKED", 1000)
    sources.contents["train-images-idx3-ubyte"] = bytes(1001)
    sources.publish(sources.debian)
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz unpacks to more than 1000"):
        fetch("fashion-mnist", root)


def test_intact_files_are_kept_and_damaged_ones_replaced(sources: Sources, root: Path) -> None:
    sources.publish(sources.mirror)
    fetch("fashion-mnist", root)
    shutil.rmtree(sources.mirror)
    assert fetch("fashion-mnist", root).startswith("already in ")
    (root / "FashionMNIST" / "raw" / "t10k-labels-idx1-ubyte").write_bytes(b"damaged")
    sources.publish(sources.mirror)
    assert "mirror" in fetch("fashion-mnist", root)
    assert fetched(root) == sources.contents


def test_a_partial_download_of_a_killed_process_is_replaced(sources: Sources, root: Path) -> None:
    leftover = root / ".fashion-mnist.partial" / "FashionMNIST" / "raw"
    leftover.mkdir(parents=True)
    for name in sources.contents:
        (leftover / name).write_bytes(b"half")
    assert not is_present("fashion-mnist", root)
    sources.publish(sources.mirror)
    fetch("fashion-mnist", root)
    assert fetched(root) == sources.contents
    assert not (root / ".fashion-mnist.partial").exists()


def test_two_concurrent_fetches_download_once(sources: Sources, root: Path) -> None:
    sources.publish(sources.mirror)
    with ThreadPoolExecutor(2) as pool:
        came_from = sorted(pool.map(lambda _: fetch("fashion-mnist", root), range(2)))
    assert came_from[0].startswith("already ")
    assert came_from[1] == sources.mirror.as_uri() + "/"


def write_cifar_archive(path: Path, monkeypatch: pytest.MonkeyPatch, member: str = "") -> None:
    """Write an archive with the original layout and tiny files, and register its hashes."""
    splits = files_of("cifar100").values()
    names = {name for split in splits for name in split}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tar(dict.fromkeys([*sorted(names), *filter(None, [member])], b"x")))
    for split in splits:
        for name in tuple(split):
            monkeypatch.setitem(split, name, f"md5:{hashlib.md5(b'x').hexdigest()}")
    monkeypatch.setattr(CIFAR100, "tgz_md5", hashlib.md5(path.read_bytes()).hexdigest())


@pytest.fixture
def archive(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Place of an archive of CIFAR-100 that cannot be downloaded."""
    monkeypatch.setattr(CIFAR100, "url", REFUSING)
    return root / "cifar-100-python.tar.gz"


def test_a_cifar_archive_placed_by_hand_is_used(
    root: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=f"(?s)refused.*By hand: put .* at {archive}"):
        fetch("cifar100", root)
    write_cifar_archive(archive, monkeypatch)
    assert fetch("cifar100", root) == str(archive)
    unpacked = {file.name for file in (root / "cifar-100-python").iterdir()}
    assert unpacked == {"train", "test", "meta"}


def test_a_tampered_cifar_archive_is_not_unpacked(
    root: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar_archive(archive, monkeypatch)
    archive.write_bytes(archive.read_bytes() + b"\0")
    monkeypatch.setattr(tarfile, "open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(DataError, match=f"{archive}: md5 differs: .* must have"):
        fetch("cifar100", root)
    assert visible(root) == [archive]


def test_a_member_outside_the_archive_is_refused(
    root: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar_archive(archive, monkeypatch, member="../../escaped")
    with pytest.raises(DataError, match="outside the destination"):
        fetch("cifar100", root)
    assert not (root / "escaped").exists()
    assert visible(root) == [archive]


def test_digits_are_present_only_when_scikit_learn_is_installed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fetch("digits", root) == "scikit-learn"
    assert is_present("digits", root)
    (name, digest), *others = checksums(DataConfig(name="digits"), root).items()
    assert name == "digits.csv.gz"
    assert len(digest) == 64
    assert not others
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert not is_present("digits", root)
    for refusing in (fetch, lambda *_: checksums(DataConfig(name="digits"), root)):
        with pytest.raises(DataError, match="pip install scikit-learn"):
            refusing("digits", root)


@pytest.mark.parametrize("name", ["imagenet", "image-folder"])
def test_an_unknown_dataset_is_refused_with_a_list_of_known_ones(name: str, root: Path) -> None:
    with pytest.raises(DataError, match=f"{name}: not a dataset that can be .*fashion-mnist"):
        fetch(name, root)


def test_a_data_root_that_cannot_be_created_raises_a_data_error(
    sources: Sources, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="Not a directory; fashion-mnist cannot be stored in this"):
        fetch("fashion-mnist", tmp_path / "file" / "root")


def test_statuses_list_every_dataset_with_presence_and_place(sources: Sources, root: Path) -> None:
    sources.publish(sources.mirror)
    fetch("fashion-mnist", root)
    shown = {status.name: (status.is_present, status.place) for status in statuses(root)}
    assert list(shown) == [*DATASETS, "cifar10-c", "cifar100-c"]
    assert shown["fashion-mnist"] == (True, str(root / "FashionMNIST" / "raw"))
    assert shown["cifar10"] == (False, str(root / "cifar-10-batches-py"))
    assert shown["digits"] == (True, "scikit-learn")


def test_checksums_cover_only_the_files_that_a_run_loads(sources: Sources, root: Path) -> None:
    sources.publish(sources.mirror)
    fetch("fashion-mnist", root)
    every = {
        f"FashionMNIST/raw/{name}": hashlib.sha256(content).hexdigest()
        for name, content in sources.contents.items()
    }
    assert checksums(DataConfig(), root) == every
    without_test = {name: sha256 for name, sha256 in every.items() if "t10k" not in name}
    assert checksums(DataConfig(test=False), root) == without_test


def test_an_archive_is_unpacked_into_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`test_temporary.py` has the folders of killed processes."""
    archive = tmp_path / "images.tar"
    archive.write_bytes(tar({"dtd/lock": b"abc"}))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with unpacked(archive) as folder:
        assert (folder / "dtd" / "lock").read_bytes() == b"abc"
        assert (folder.parent / "lock").is_file(), "that of `temporary_folder`"
    assert list(tmp_path.iterdir()) == [archive]
