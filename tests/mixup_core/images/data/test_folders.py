"""Image folders: their facts, which are cached, their hash, and what is refused."""

import dataclasses
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mixup_core.images.data import folder_facts
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.folder_facts import FolderFacts, scan_folder
from mixup_core.images.data.folders import (
    Layout,
    class_files,
    class_files_and_faults,
    describe,
    folder_digest,
)
from tests.mixup_core.small_files import folder_config


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Folder of two classes with three training images and two test images."""
    folder = tmp_path / "pets"
    for file in ("train/cat/0.png", "train/cat/1.JPEG", "train/dog/0.png", "test/cat/0.png"):
        save(folder / file)
    save(folder / "test/dog/0.bmp")
    return folder


def save(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4)).save(file)


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def replaced_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


def hide(folder: Path) -> None:
    """Write files that no user sees as images of the folder."""
    for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
        for place in (folder, folder / "train", folder / "train" / "cat"):
            (place / name).write_bytes(b"x")


def test_describe_returns_the_facts_of_an_image_folder(pets: Path) -> None:
    assert dataclasses.asdict(describe(folder_config(pets))) == {
        "title": "pets",
        "num_train": 3,
        "num_test": 2,
        "num_classes": 2,
        "channels": 3,
        "image_size": 8,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "smallest_class": 1,
        "classes": ("cat", "dog"),
    }


def test_classes_and_files_are_sorted_and_hidden_ones_ignored(pets: Path) -> None:
    hide(pets)
    (pets / "train" / ".cache").mkdir()
    files = class_files(pets, "train")
    assert list(files) == ["cat", "dog"]
    assert [file.name for file in files["cat"]] == ["0.png", "1.JPEG"]


@pytest.mark.parametrize(
    ("train", "test", "advice"),
    [
        ("Äpfel", "äpfel", "Äpfel and äpfel differ only in capital letters"),
        ("\u00e9t", "e\u0301t", r"'e\\u0301t' and '\\xe9t' differ only in the Unicode form"),
        ("ant", "cow", r"only in train/: ant; only in test/: cow"),
        ("ant", "cow", r"data\.skip leaves out a class, such as train/ant"),
    ],
)
def test_classes_in_one_split_only_are_named_readably_with_advice(
    pets: Path, train: str, test: str, advice: str
) -> None:
    save(pets / "train" / train / "0.png")
    save(pets / "test" / test / "0.png")
    with pytest.raises(DataError, match=advice):
        describe(folder_config(pets))


@pytest.mark.parametrize(
    ("place", "make", "message"),
    [
        ("train/cow", Path.mkdir, "train/cow: an empty class"),
        ("train/a.png", Path.touch, "train/a.png: a file where a class folder should be"),
        ("train/cat/notes.txt", Path.touch, "train/cat/notes.txt: not an image file"),
        ("train/cat/kittens", Path.mkdir, "train/cat/kittens: not an image file"),
        ("train/cat/pipe.png", os.mkfifo, "train/cat/pipe.png: not an image file"),
        (
            "train/cat/link.png",
            lambda place: place.symlink_to("gone.png"),
            "link.png: a link to 'gone.png' that leads to no file",
        ),
        ("train", shutil.rmtree, "train: not found; .* train/<class>/"),
        ("train", emptied, "train: no class folders"),
        ("train", replaced_by_a_file, "train: expected a folder, found a file"),
        ("test", shutil.rmtree, r"test: not found; .*data\.test_fraction: 0\.2.*test: fal"),
    ],
)
def test_entries_that_are_not_images_are_refused_by_name(
    place: str, make: Any, message: str, pets: Path
) -> None:
    make(pets / place)
    with pytest.raises(DataError, match=message):
        describe(folder_config(pets))


def test_all_faults_of_a_split_are_reported_together(pets: Path) -> None:
    names = [f"train/cat/{number}.txt" for number in range(23)] + ["train/a.csv"]
    for name in names:
        (pets / name).touch()
    _, faults = class_files_and_faults(pets, "train")
    assert len(faults) == len(names)
    with pytest.raises(DataError) as raised:
        class_files(pets, "train")
    assert str(raised.value).splitlines() == [
        f"{pets}/train/a.csv: a file where a class folder should be.",
        f"{pets}: 23 files, train/cat/0.txt, train/cat/1.txt, train/cat/10.txt and 20 more: "
        "not an image file; a class folder must contain only images.",
        f"`mixsweep data check {pets} --all` lists every file",
        "convert or remove these files, or leave them out with data.skip",
    ]


def test_class_folders_outside_train_are_named_with_the_folders_that_are_expected(
    tmp_path: Path,
) -> None:
    for kind in ("cat", "dog"):
        save(tmp_path / kind / "0.png")
    with pytest.raises(DataError, match=r"contains train/<class>/.* contains cat/, dog/\."):
        class_files(tmp_path, "train")


def test_the_digest_is_the_sha256_of_a_sorted_sha256sum_listing(tmp_path: Path) -> None:
    contents = {"train/dog/1.png": b"one", "train/cat/2.png": b"two", "test/cat/é.png": b"three"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    listing = b"".join(
        hashlib.sha256(contents[name]).hexdigest().encode() + b"  " + name.encode() + b"\0"
        for name in ("test/cat/é.png", "train/cat/2.png", "train/dog/1.png")
    )
    hide(tmp_path)
    (tmp_path / "readme.txt").touch()
    assert folder_digest(tmp_path, tmp_path.parent / "data") == hashlib.sha256(listing).hexdigest()


def test_a_folder_is_scanned_again_only_when_a_file_or_the_decoder_changed(
    pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    scanned = folder_facts._scanned

    def count(place: Path, digests: dict[bytes, str], digest: str, layout: Layout) -> FolderFacts:
        looked.append(digest)
        return scanned(place, digests, digest, layout)

    monkeypatch.setattr(folder_facts, "_scanned", count)
    (pets / "test/dog/z.png").write_bytes(b"none")
    first = scan_folder(pets, tmp_path / "data")
    assert scan_folder(pets, tmp_path / "data") == first
    assert len(looked) == 1
    (pets / "test/dog/z.png").unlink()
    assert scan_folder(pets, tmp_path / "data").unreadable == {}
    assert len(looked) == 2
    monkeypatch.setattr(folder_facts, "picture_reader", lambda: "0")
    scan_folder(pets, tmp_path / "data")
    assert len(looked) == 3


def test_damaged_cached_facts_are_computed_again(pets: Path, tmp_path: Path) -> None:
    facts = scan_folder(pets, tmp_path / "data")
    kept = tmp_path / "data" / "digests" / f"folder-{facts.digest}.json"
    kept.write_text('{"digest": 3}')
    assert scan_folder(pets, tmp_path / "data") == facts
