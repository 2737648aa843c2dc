"""FolderFacts: names, duplicates, transparent and unreadable images, found in one pass."""

from pathlib import Path

import pytest
from PIL import Image

from mixup_core.images.data import folder_facts
from mixup_core.images.data.folder_facts import FolderFacts, scan_folder
from mixup_core.images.data.folders import Layout, folder_digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of two classes.

    One test image equals a training image, one is half transparent, one is no image.
    """
    place = tmp_path / "pets"
    for number, name in enumerate(
        (
            "train/cat/a.png",
            "train/cat/b.png",
            "train/dog/a.png",
            "test/cat/a.png",
            "test/dog/a.png",
        )
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(place / name)
    Image.new("RGBA", (4, 4), (9, 9, 9, 100)).save(place / "train/cat/b.png")
    (place / "test/dog/a.png").write_bytes((place / "train/cat/a.png").read_bytes())
    (place / "test/dog/z.png").write_bytes(b"none")
    return place


def test_scan_folder_finds_shared_transparent_and_unreadable_images(
    folder: Path, tmp_path: Path
) -> None:
    facts = scan_folder(folder, tmp_path / "data")
    assert facts.digest == folder_digest(folder, tmp_path / "data")
    assert facts.classes == ("cat", "dog")
    assert facts.train == {"cat": ("a.png", "b.png"), "dog": ("a.png",)}
    assert facts.test == {"cat": ("a.png",), "dog": ("a.png", "z.png")}
    assert facts.shared == ("dog/a.png",)
    assert facts.copies == {}
    assert facts.transparent == ("train/cat/b.png",)
    assert list(facts.unreadable) == ["test/dog/z.png"]
    assert "cannot be decoded" in facts.unreadable["test/dog/z.png"]


def test_a_folder_is_scanned_again_only_when_a_file_or_the_decoder_changed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    scanned = folder_facts._scanned

    def count(place: Path, digests: dict[bytes, str], digest: str, layout: Layout) -> FolderFacts:
        looked.append(digest)
        return scanned(place, digests, digest, layout)

    monkeypatch.setattr(folder_facts, "_scanned", count)
    first = scan_folder(folder, tmp_path / "data")
    assert scan_folder(folder, tmp_path / "data") == first
    assert len(looked) == 1
    (folder / "test/dog/z.png").unlink()
    assert scan_folder(folder, tmp_path / "data").unreadable == {}
    assert len(looked) == 2
    monkeypatch.setattr(folder_facts, "picture_reader", lambda: "0")
    scan_folder(folder, tmp_path / "data")
    assert len(looked) == 3


def test_damaged_cached_facts_are_computed_again(folder: Path, tmp_path: Path) -> None:
    facts = scan_folder(folder, tmp_path / "data")
    kept = tmp_path / "data" / "digests" / f"folder-{facts.digest}.json"
    kept.write_text('{"digest": 3}')
    assert scan_folder(folder, tmp_path / "data") == facts
