"""Mapped files: one decoded file per dataset and machine, never outdated, never damaged."""

import hashlib
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load, load_mapped
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.folders import folder_digest
from tests.damages import DAMAGES
from tests.mixup_core.small_files import FashionMnist, folder_config, write_images

DIGITS = DataConfig(name="digits", val_size=100)


def assert_equal(one: Splits, other: Splits) -> None:
    assert one.info == other.info
    for name in ("train", "val", "test"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert torch.equal(ours.pixels, theirs.pixels)
            assert torch.equal(ours.labels, theirs.labels)
            assert ours.pixels.dtype == theirs.pixels.dtype
            assert ours.pixels.stride() == theirs.pixels.stride()


def decoded(root: Path) -> list[Path]:
    return sorted(root.glob("decoded-*/*"))


@pytest.mark.parametrize("val_size", [0, 100])
@pytest.mark.parametrize("test", [True, False])
def test_load_mapped_returns_the_same_images_as_load(
    tmp_path: Path, val_size: int, test: bool
) -> None:
    data = DataConfig(name="digits", val_size=val_size, test=test)
    for _ in ("decoded", "found"):
        assert_equal(load_mapped(data, tmp_path), load(data, tmp_path))


def test_decoded_images_are_not_decoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_mapped(DIGITS, tmp_path)
    reader = "mixup_core.images.data.datasets.read_split"
    monkeypatch.setattr(reader, lambda *_: pytest.fail("decoded again"))
    load_mapped(DIGITS, tmp_path)
    load_mapped(DataConfig(name="digits", val_size=100, num_train=7), tmp_path)
    assert len(decoded(tmp_path)) == 1


def test_pooled_images_are_stored_and_mapped_pooled(tmp_path: Path) -> None:
    """Otherwise each run would have its own pooled copy in memory."""
    data = DataConfig(name="digits", val_size=100, pool=2)
    for _ in ("decoded", "found"):
        splits = load_mapped(data, tmp_path)
        assert_equal(splits, load(DIGITS, tmp_path).prepared(data))
        assert splits.train.pixels.dtype == torch.int16
        assert splits.train.pooled(2) is splits.train
    load_mapped(DIGITS, tmp_path)
    assert len(decoded(tmp_path)) == 2


def test_writing_to_the_images_changes_neither_the_file_nor_another_process(
    tmp_path: Path,
) -> None:
    mine, other = load_mapped(DIGITS, tmp_path), load_mapped(DIGITS, tmp_path)
    mine.train.pixels.fill_(255)
    assert_equal(other, load(DIGITS, tmp_path))
    assert_equal(load_mapped(DIGITS, tmp_path), other)


@pytest.mark.parametrize("damage", ["a byte", "cut short", "empty", "a FIFO", "a link"])
def test_a_damaged_decoded_file_is_written_again(tmp_path: Path, damage: str) -> None:
    load_mapped(DIGITS, tmp_path)
    (file,) = decoded(tmp_path)
    whole = file.read_bytes()
    middle = len(whole) // 2
    match damage:
        case "a byte":
            file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        case "cut short":
            file.write_bytes(whole[:middle])
        case "a link":
            file.rename(tmp_path / "moved")
            file.symlink_to(tmp_path / "nowhere")
        case "empty":
            file.write_bytes(b"")
        case _:
            DAMAGES[damage](file)
    assert_equal(load_mapped(DIGITS, tmp_path), load(DIGITS, tmp_path))
    assert decoded(tmp_path) == [file]
    assert file.read_bytes() == whole


@pytest.mark.parametrize("kind", ["open to others", "a file", "a link"])
def test_decoded_files_that_another_user_can_write_are_not_used(tmp_path: Path, kind: str) -> None:
    load_mapped(DIGITS, tmp_path)
    (file,) = decoded(tmp_path)
    parts = torch.load(file, weights_only=True)
    parts["train"]["labels"] = parts["train"]["labels"].roll(1)
    torch.save(parts, file)
    file.rename(file.with_stem(f"{file.stem[:-64]}{hashlib.sha256(file.read_bytes()).hexdigest()}"))
    folder = file.parent
    match kind:
        case "open to others":
            folder.chmod(0o777)
        case "a file":
            folder.rename(tmp_path / "moved")
            folder.write_bytes(b"")
        case _:
            folder.rename(tmp_path / "moved")
            folder.symlink_to(tmp_path / "moved")
    assert_equal(load_mapped(DIGITS, tmp_path), load(DIGITS, tmp_path))


def test_a_partial_file_of_a_killed_process_is_not_read(tmp_path: Path) -> None:
    load_mapped(DIGITS, tmp_path)
    (file,) = decoded(tmp_path)
    whole = file.read_bytes()
    partial = file.with_name(f"{file.stem.rpartition('-')[0]}.partial")
    file.unlink()
    partial.write_bytes(whole[:1000])
    assert_equal(load_mapped(DIGITS, tmp_path), load(DIGITS, tmp_path))
    assert decoded(tmp_path) == [file]


def test_partial_files_of_killed_processes_are_deleted_and_those_of_other_datasets_kept(
    tmp_path: Path,
) -> None:
    load_mapped(DIGITS, tmp_path)
    (file,) = decoded(tmp_path)
    file.unlink()
    for name in ("digits-0123456789abcdef.partial", "mnist-0123456789abcdef.partial"):
        file.with_name(name).write_bytes(b"half")
    load_mapped(DIGITS, tmp_path)
    left = {file.name for file in decoded(tmp_path) if file.suffix == ".partial"}
    assert left == {"mnist-0123456789abcdef.partial"}


def test_images_load_when_the_disk_is_full(tmp_path: Path) -> None:
    load(DIGITS, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # less than the digits need
    try:
        found = load_mapped(DIGITS, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_equal(found, load(DIGITS, tmp_path))
    assert decoded(tmp_path) == []


def test_a_changed_source_file_is_refused_although_a_decoded_file_exists(
    fashion: FashionMnist,
) -> None:
    load_mapped(DataConfig(), fashion.root)
    images = fashion.root / "FashionMNIST" / "raw" / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1] + b"\0")
    with pytest.raises(DataError, match=f"{images}: sha256 differs"):
        load_mapped(DataConfig(), fashion.root)
    images.unlink()
    with pytest.raises(DataError, match="not found; get it with `mixsweep data fetch"):
        load_mapped(DataConfig(), fashion.root)


def test_a_changed_image_folder_is_decoded_again_or_refused_by_its_digest(tmp_path: Path) -> None:
    folder = tmp_path / "pets"
    noise = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    write_images(folder, "train", a=Image.fromarray(noise[0]), b=Image.fromarray(noise[1]))
    data = folder_config(folder, test=False)
    as_read = folder_config(folder, test=False, digest=folder_digest(folder, folder / ".data"))
    for config in (data, as_read):
        assert load_mapped(config, tmp_path).train.pixels[0].float().std() > 0
    write_images(folder, "train", a=Image.new("RGB", (8, 8), (9, 9, 9)))
    assert (load_mapped(data, tmp_path).train.pixels[0] == 9).all()
    with pytest.raises(DataError, match="changed since the study was read"):
        load_mapped(as_read, tmp_path)
