"""Datasets: images of tiny files in the original formats are read correctly, or refused by name."""

import hashlib
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.datasets
from PIL import Image
from sklearn.datasets import load_digits

from mixup_core.images.data.catalog import DATASETS, DataError
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.fetching import fetch
from mixup_core.images.data.folders import folder_digest
from mixup_core.images.data.sets import fashion_mnist
from tests.mixup_core.images.data.small_cifar import write_cifar10
from tests.mixup_core.small_files import (
    NUM_TEST,
    NUM_TRAIN,
    FashionMnist,
    folder_config,
    idx,
    write_images,
)


def test_fashion_mnist_images_and_labels_are_read_as_written(fashion: FashionMnist) -> None:
    splits = load(DataConfig(), fashion.root)
    assert splits.info == DATASETS["fashion-mnist"].info
    assert splits.val is None
    assert splits.test is not None
    for images, count in ((splits.train, NUM_TRAIN), (splits.test, NUM_TEST)):
        assert len(images) == count
        assert images.pixels.shape == (count, 1, 28, 28)
        assert images.pixels.dtype == torch.uint8
        assert images.labels.dtype == torch.int64
        assert images.labels.tolist() == [i % 10 for i in range(count)]
        assert torch.equal(images.pixels.float().mean((1, 2, 3)), torch.arange(count).float())


def test_the_data_root_defaults_to_the_environment_variable(
    fashion: FashionMnist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(fashion.root))
    assert len(load(DataConfig()).train) == NUM_TRAIN


def test_cifar_images_keep_their_channels_rows_and_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar10(tmp_path, monkeypatch)
    splits = load(DataConfig(name="cifar10"), tmp_path)
    assert splits.test is not None
    assert splits.train.pixels.shape == (NUM_TRAIN, 3, 32, 32)
    for image, batch, index in ((splits.train.pixels[9], 3, 1), (splits.test.pixels[2], 6, 2)):
        assert (image[0] == batch).all()
        assert (image[1] == index).all()
        assert (image[2] == torch.arange(32)).all()
    assert splits.train.labels.tolist() == [0, 1] * 10


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar10"])
def test_test_files_are_not_needed_when_test_is_false(
    name: str, fashion: FashionMnist, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar10(fashion.root, monkeypatch)
    for file in [*fashion.root.glob("*/raw/t10k-*"), *fashion.root.glob("*/test_batch")]:
        file.unlink()
    assert load(DataConfig(name=name, test=False), fashion.root).test is None
    with pytest.raises(DataError, match=f"not found; get it with `mixsweep data fetch {name}`"):
        load(DataConfig(name=name), fashion.root)


def test_a_changed_byte_is_refused_with_the_file_and_both_digests(fashion: FashionMnist) -> None:
    path = fashion.root / "FashionMNIST/raw/train-images-idx3-ubyte"
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(DataError, match=rf"{path}: sha256 differs: expected \w+, got {found}"):
        load(DataConfig(), fashion.root)


def test_torchvisions_old_unverified_copy_is_not_read(fashion: FashionMnist) -> None:
    processed = fashion.root / "FashionMNIST" / "processed"
    processed.mkdir()
    poison = (torch.zeros(NUM_TRAIN, 28, 28, dtype=torch.uint8), torch.arange(NUM_TRAIN) % 10)
    for file in ("training.pt", "test.pt"):
        torch.save(poison, processed / file)
    assert load(DataConfig(), fashion.root).train.pixels[-1].min() == NUM_TRAIN - 1


class _Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.marker,))


def test_a_tampered_cifar_pickle_is_refused_before_it_is_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar10(tmp_path, monkeypatch)
    marker = tmp_path / "ran"
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    batch.write_bytes(pickle.dumps(_Payload(marker)))
    with pytest.raises(DataError, match="data_batch_2: md5 differs"):
        load(DataConfig(name="cifar10"), tmp_path)
    assert not marker.exists()
    pickle.loads(batch.read_bytes())
    assert marker.exists(), "the payload would have run"


def test_a_label_out_of_range_is_refused_with_its_index(fashion: FashionMnist) -> None:
    labels = np.arange(NUM_TRAIN) % 10
    labels[13] = 10
    fashion.write("train-labels-idx1-ubyte", idx(labels))
    with pytest.raises(DataError, match=r"train: labels must be in 0\.\.9, got 10 at index 13\."):
        load(DataConfig(), fashion.root)


def test_a_negative_label_which_cross_entropy_would_skip_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar10(tmp_path, monkeypatch, labels=(0, 1, -100, 1))
    with pytest.raises(DataError, match=r"cifar10 train: labels must be .* got -100 at index 2"):
        load(DataConfig(name="cifar10"), tmp_path)


def test_a_class_without_images_is_refused(fashion: FashionMnist) -> None:
    labels = np.arange(NUM_TEST) % 10
    labels[7] = 0
    fashion.write("t10k-labels-idx1-ubyte", idx(labels))
    with pytest.raises(DataError, match=r"test: class 7 has no image\."):
        load(DataConfig(), fashion.root)


@pytest.mark.parametrize(
    ("file", "shape"),
    [("train-images-idx3-ubyte", (NUM_TRAIN - 1, 28, 28)), ("train-labels-idx1-ubyte", (21,))],
)
def test_a_number_of_images_that_differs_from_the_catalogue_is_refused(
    file: str, shape: tuple[int, ...], fashion: FashionMnist
) -> None:
    fashion.write(file, idx(np.zeros(shape)))
    with pytest.raises(DataError, match=rf"shape \({NUM_TRAIN}.*got .* of shape \({shape[0]}"):
        load(DataConfig(), fashion.root)


def test_validation_images_are_cut_from_training_images_reproducibly(fashion: FashionMnist) -> None:
    def cut(val_size: int) -> tuple[list[int], list[int]]:
        splits = load(DataConfig(val_size=val_size), fashion.root)
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


@pytest.mark.parametrize("val_size", [NUM_TRAIN, NUM_TRAIN + 1])
def test_validation_cannot_take_every_training_image(val_size: int, fashion: FashionMnist) -> None:
    with pytest.raises(ValueError, match=rf"`data.val_size < .*val_size={val_size}, .*=20\)"):
        load(DataConfig(val_size=val_size), fashion.root)


def test_digits_are_the_scikit_learn_images_scaled_by_fifteen(tmp_path: Path) -> None:
    splits = load(DataConfig(name="digits"), tmp_path)
    assert int(torch.bincount(splits.train.labels).min()) == splits.info.smallest_class
    assert splits.test is not None
    assert (len(splits.train), len(splits.test)) == (1437, 360)
    pixels = torch.cat([splits.train.pixels, splits.test.pixels]).reshape(-1, 64)
    labels = torch.cat([splits.train.labels, splits.test.labels])
    ours = np.column_stack([pixels.numpy() / 15, labels.numpy()])
    bundle = load_digits()
    theirs = np.column_stack([bundle.data, bundle.target])
    assert sorted(ours.tolist()) == sorted(theirs.tolist())
    assert torch.equal(load(DataConfig(name="digits"), tmp_path).train.pixels, splits.train.pixels)


def test_loading_digits_without_scikit_learn_raises_a_data_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match="scikit-learn"):
        load(DataConfig(name="digits"), tmp_path)


def test_folder_images_are_resized_cropped_and_labelled_by_sorted_class(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = Image.fromarray(rng.integers(0, 256, (16, 40, 3), dtype=np.uint8))
    grey = Image.new("L", (8, 24), 77)
    clear = Image.new("RGBA", (5, 5), (10, 20, 30, 51))
    write_images(tmp_path, "train", wide=wide, grey=grey, clear=clear)
    write_images(tmp_path, "test", wide=wide, grey=grey, clear=clear)
    splits = load(folder_config(tmp_path, background="white"))
    assert splits.test is not None
    assert torch.equal(splits.train.pixels, splits.test.pixels)
    assert splits.train.labels.tolist() == [0, 1, 2]
    of_clear, of_grey, of_wide = splits.train.pixels
    assert of_clear.float().mean((1, 2)).tolist() == [206, 208, 210]  # a fifth
    assert (of_grey == 77).all()
    # 40 x 16 becomes 20 x 8, of which columns 6..13 are the middle.
    resized = wide.resize((20, 8), Image.Resampling.BILINEAR)
    assert np.array_equal(of_wide.permute(1, 2, 0).numpy(), np.asarray(resized)[:, 6:14])


def test_a_folder_without_test_images_loads_when_test_is_false(tmp_path: Path) -> None:
    write_images(tmp_path, "train", a=Image.new("L", (8, 8)), b=Image.new("L", (8, 8)))
    splits = load(
        folder_config(tmp_path, test=False, digest=folder_digest(tmp_path, tmp_path / ".data"))
    )
    assert splits.test is None
    assert len(splits.train) == 2


@pytest.mark.parametrize("kept_bytes", [0, 20, 150])
def test_an_image_that_cannot_be_decoded_is_refused_by_name(
    kept_bytes: int, tmp_path: Path
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    write_images(tmp_path, "train", a=Image.fromarray(noise), b=Image.fromarray(noise))
    broken = tmp_path / "train" / "b" / "0.png"
    assert broken.stat().st_size > 200
    broken.write_bytes(broken.read_bytes()[:kept_bytes])
    with pytest.raises(DataError, match=f"{broken}: cannot be decoded"):
        load(folder_config(tmp_path, test=False))


def test_images_of_more_than_8_bits_are_refused_not_clipped(tmp_path: Path) -> None:
    deep = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000)
    write_images(tmp_path, "train", a=deep, b=deep)
    with pytest.raises(DataError, match=r"\(Pillow mode I;16\); convert it to 8 bits"):
        load(folder_config(tmp_path, test=False))


@pytest.mark.parametrize("size", [(1, 3_000_000), (8000, 7501)])
def test_an_image_with_too_many_pixels_is_refused_before_decoding(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    write_images(tmp_path, "train", a=Image.new("1", (8, 8)), b=Image.new("1", size))
    file = tmp_path / "train" / "b" / "0.png"
    file.write_bytes(file.read_bytes()[:200])  # nothing of it can be decoded
    with pytest.raises(
        DataError, match=rf"{file}: has {size[0]} x {size[1]} .* at most 60,000,000"
    ):
        load(folder_config(tmp_path, test=False))


def test_a_long_image_below_the_pixel_limit_is_cropped(tmp_path: Path) -> None:
    long = np.zeros((3000, 8), dtype=np.uint8)
    long[1496:1504] = 200
    write_images(tmp_path, "train", a=Image.fromarray(long), b=Image.new("L", (8, 8)))
    pixels = load(folder_config(tmp_path, test=False)).train.pixels
    assert pixels[0].unique().tolist() == [200]


@pytest.mark.parametrize("suffix", ["gif", "png", "webp", "tiff"])
def test_an_image_of_several_pictures_is_refused(tmp_path: Path, suffix: str) -> None:
    write_images(tmp_path, "train", a=Image.new("L", (8, 8)), b=Image.new("L", (8, 8)))
    file = tmp_path / "train" / "b" / f"1.{suffix}"
    pictures = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    pictures[0].save(file, save_all=True, append_images=pictures[1:])
    with pytest.raises(DataError, match=f"{file}: contains more than one picture"):
        load(folder_config(tmp_path, test=False))


def test_a_photo_with_an_embedded_preview_loads_as_the_photo(tmp_path: Path) -> None:
    write_images(tmp_path, "train", a=Image.new("L", (8, 8)), b=Image.new("L", (8, 8)))
    photo, preview = (Image.new("RGB", (8, 8), (level,) * 3) for level in (200, 0))
    photo.save(tmp_path / "train" / "b" / "1.jpg", "MPO", save_all=True, append_images=[preview])
    pixels = load(folder_config(tmp_path, test=False)).train.pixels
    assert pixels[2].unique().tolist() == [200]


def test_a_gif_of_one_frame_loads_as_an_image(tmp_path: Path) -> None:
    write_images(tmp_path, "train", a=Image.new("L", (8, 8)), b=Image.new("L", (8, 8)))
    Image.new("L", (8, 8), 200).save(tmp_path / "train" / "b" / "1.gif")
    assert load(folder_config(tmp_path, test=False)).train.pixels[2].unique().tolist() == [200]


def test_a_folder_that_changed_since_the_study_was_read_is_refused(tmp_path: Path) -> None:
    write_images(tmp_path, "train", a=Image.new("L", (8, 8)), b=Image.new("L", (8, 8)))
    config = folder_config(tmp_path, test=False, digest=folder_digest(tmp_path, tmp_path / ".data"))
    load(config)
    write_images(tmp_path, "train", a=Image.new("L", (8, 8), 1))
    with pytest.raises(DataError, match="changed since the study was read"):
        load(config)


@pytest.mark.skipif(
    not fashion_mnist.DEBIAN_FOLDER.is_dir(),
    reason="NOT CHECKED: the real Fashion-MNIST needs the Debian package dataset-fashion-mnist",
)
def test_the_real_fashion_mnist_has_its_published_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torchvision.datasets.FashionMNIST, "mirrors", [])
    assert fetch("fashion-mnist", tmp_path) == "Debian package dataset-fashion-mnist, installed"
    splits = load(DataConfig(), tmp_path)
    assert splits.test is not None
    assert splits.train.labels.bincount().tolist() == [6000] * 10
    assert splits.test.labels.bincount().tolist() == [1000] * 10
    # Mean of the training pixels in [0, 1] as commonly published.
    assert splits.train.pixels.double().mean() / 255 == pytest.approx(0.2860, abs=5e-5)
