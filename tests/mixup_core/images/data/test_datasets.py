"""Datasets: images of tiny files in the original formats are read correctly, or refused by name."""

import hashlib
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load, load_mapped, load_once
from mixup_core.images.data.facts import DataError, squared
from mixup_core.images.data.folders import folder_digest
from tests.damages import DAMAGES
from tests.mixup_core.images.data.small_cifar import write_cifar10
from tests.mixup_core.small_files import (
    NUM_TEST,
    NUM_TRAIN,
    folder_config,
    idx,
    put,
    write_images,
)


def test_cifar_images_keep_their_channels_rows_and_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar10(tmp_path, monkeypatch)
    splits = load(DataConfig(name="cifar10"), tmp_path)
    assert splits.train.pixels.shape == (NUM_TRAIN, 3, 32, 32)
    for image, batch, index in ((splits.train.pixels[9], 3, 1), (splits.test.pixels[2], 6, 2)):
        assert (image[0] == batch).all()
        assert (image[1] == index).all()
        assert (image[2] == torch.arange(32)).all()
    assert splits.train.labels.tolist() == [0, 1] * 10


@pytest.mark.parametrize(
    ("split", "count", "place", "label", "message"),
    [
        ("train", NUM_TRAIN, 13, 10, r"train: labels must be in 0\.\.9, got 10 at index 13\."),
        ("t10k", NUM_TEST, 7, 0, r"test: class 7 has no image\."),
    ],
)
def test_a_label_out_of_range_and_a_class_without_images_are_refused(
    fashion: Path, monkeypatch: pytest.MonkeyPatch,
    split: str, count: int, place: int, label: int, message: str,
) -> None:  # fmt: skip
    labels = np.arange(count) % 10
    labels[place] = label
    file = f"FashionMNIST/raw/{split}-labels-idx1-ubyte"
    put(fashion, file, idx(labels), "fashion-mnist", monkeypatch)
    with pytest.raises(DataError, match=message):
        load(DataConfig(), fashion)


@pytest.mark.parametrize(
    ("file", "shape"),
    [("train-images-idx3-ubyte", (NUM_TRAIN - 1, 28, 28)), ("train-labels-idx1-ubyte", (21,))],
)
def test_a_number_of_images_that_differs_from_the_catalogue_is_refused(
    file: str, shape: tuple[int, ...], fashion: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(fashion, f"FashionMNIST/raw/{file}", idx(np.zeros(shape)), "fashion-mnist", monkeypatch)
    with pytest.raises(DataError, match=rf"shape \({NUM_TRAIN}.*got .* of shape \({shape[0]}"):
        load(DataConfig(), fashion)


def test_validation_images_are_cut_from_training_images_reproducibly(fashion: Path) -> None:
    def cut(val_size: int) -> tuple[list[int], list[int]]:
        splits = load(DataConfig(val_size=val_size), fashion)
        assert splits.val is not None
        train, val = splits.train, splits.val
        for images in (train, val):
            assert torch.equal(images.labels, images.pixels[:, 0, 0, 0].long() % 10)
        return train.pixels[:, 0, 0, 0].tolist(), val.pixels[:, 0, 0, 0].tolist()

    train, val = cut(6)
    assert len(val) == 6
    assert sorted(train + val) == list(range(NUM_TRAIN))
    assert train == sorted(train)
    assert val != list(range(6))
    assert cut(6) == (train, val)
    assert set(cut(3)[1]) < set(val)


def test_digits_are_the_scikit_learn_images_scaled_by_fifteen(tmp_path: Path) -> None:
    splits = load(DataConfig(name="digits"), tmp_path)
    assert int(torch.bincount(splits.train.labels).min()) == splits.info.smallest_class
    assert (len(splits.train), len(splits.test)) == (1437, 360)
    pixels = torch.cat([splits.train.pixels, splits.test.pixels]).reshape(-1, 64)
    labels = torch.cat([splits.train.labels, splits.test.labels])
    ours = np.column_stack([pixels.numpy() / 15, labels.numpy()])
    bundle = load_digits()
    theirs = np.column_stack([bundle.data, bundle.target])
    assert sorted(ours.tolist()) == sorted(theirs.tolist())
    assert torch.equal(load(DataConfig(name="digits"), tmp_path).train.pixels, splits.train.pixels)


def test_folder_images_are_squared_put_on_the_background_and_labelled_by_sorted_class(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    wide = Image.fromarray(rng.integers(0, 256, (16, 40, 3), dtype=np.uint8))
    clear = Image.new("RGBA", (5, 5), (10, 20, 30, 51))
    for split in ("train", "test"):
        write_images(tmp_path, split, wide=wide, clear=clear)
    splits = load(folder_config(tmp_path, background="white"))
    assert torch.equal(splits.train.pixels, splits.test.pixels)
    assert splits.train.labels.tolist() == [0, 1]
    of_clear, of_wide = splits.train.pixels
    assert of_clear.float().mean((1, 2)).tolist() == [206, 208, 210]  # a fifth
    assert torch.equal(of_wide, squared(wide, 8))


DIGITS = DataConfig(name="digits", val_size=100)


def assert_equal(one: Splits, other: Splits) -> None:
    assert one.info == other.info
    assert one.parts().keys() == other.parts().keys()
    for name, ours in one.parts().items():
        theirs = other.parts()[name]
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


def test_missing_images_are_downloaded_once_by_the_runs_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[tuple[str, Path]] = []
    monkeypatch.setattr("mixup_core.images.data.datasets.is_present", lambda *_: False)
    monkeypatch.setattr("mixup_core.images.data.datasets.fetch", lambda *of: fetched.append(of))
    for _ in range(2):
        assert_equal(load_once(DIGITS, tmp_path), load(DIGITS, tmp_path))
    assert fetched == [("digits", tmp_path)]


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


@pytest.mark.parametrize(
    "damage", ["bit flipped", "truncated", "empty", "a FIFO", "a dangling link"]
)
def test_a_damaged_decoded_file_is_written_again(tmp_path: Path, damage: str) -> None:
    load_mapped(DIGITS, tmp_path)
    (file,) = decoded(tmp_path)
    whole = file.read_bytes()
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


def test_partial_files_of_killed_processes_are_neither_read_nor_kept(tmp_path: Path) -> None:
    load_mapped(DIGITS, tmp_path)
    (file,) = decoded(tmp_path)
    whole = file.read_bytes()
    file.unlink()
    for name in (
        file.stem.rpartition("-")[0], "digits-0123456789abcdef", "mnist-0123456789abcdef",
    ):  # fmt: skip
        file.with_name(f"{name}.partial").write_bytes(whole[:1000])
    assert_equal(load_mapped(DIGITS, tmp_path), load(DIGITS, tmp_path))
    assert decoded(tmp_path) == [file, file.with_name("mnist-0123456789abcdef.partial")]


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
    fashion: Path,
) -> None:
    load_mapped(DataConfig(), fashion)
    images = fashion / "FashionMNIST" / "raw" / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1] + b"\0")
    with pytest.raises(DataError, match=f"{images}: sha256 differs"):
        load_mapped(DataConfig(), fashion)
    images.unlink()
    with pytest.raises(DataError, match="not found; get it with `mixsweep data fetch"):
        load_mapped(DataConfig(), fashion)


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
