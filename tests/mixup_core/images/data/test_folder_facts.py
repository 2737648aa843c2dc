"""FolderFacts: what `data check` prints is cached until a file or the decoder changes."""

from pathlib import Path

import pytest
from PIL import Image

from mixup_core.images.data import folder_facts
from mixup_core.images.data.folder_facts import FolderFacts, scan_folder
from mixup_core.images.data.folders import Layout
from tests.mixup_core.small_files import write_images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of two classes; one file is no image."""
    place = tmp_path / "pets"
    write_images(place, "train", cat=Image.new("RGB", (4, 4)), dog=Image.new("RGB", (4, 4)))
    write_images(place, "test", cat=Image.new("RGB", (4, 4)), dog=Image.new("RGB", (4, 4)))
    (place / "test/dog/z.png").write_bytes(b"none")
    return place


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
