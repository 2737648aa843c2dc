"""Datasets: images of tiny files in the original formats are read correctly, or refused by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.datasets
from PIL import Image
from sklearn.datasets import load_digits

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.fetching import fetch
from mixup_core.images.data.sets import DATASETS, fashion_mnist
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


def test_a_label_out_of_range_is_refused_with_its_index(fashion: FashionMnist) -> None:
    labels = np.arange(NUM_TRAIN) % 10
    labels[13] = 10
    fashion.write("train-labels-idx1-ubyte", idx(labels))
    with pytest.raises(DataError, match=r"train: labels must be in 0\.\.9, got 10 at index 13\."):
        load(DataConfig(), fashion.root)


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
