from dataclasses import replace

import pytest
import torch
from scipy import stats
from torch import Tensor

from mixup_core.images.augmentations.crop import Crop, CropFlip
from mixup_core.images.batches import Draws
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.views import (
    EvaluationImages,
    NormalisedPixels,
    TrainingImages,
    draw_view_partners,
    pair_classes,
)
from mixup_core.laws import Beta, Erm
from tests.mixup_core.small_files import noise_images

CPU = torch.device("cpu")
CIFAR = DATASETS["cifar10"].info


def _images(num: int = 40) -> Images:
    return noise_images(CIFAR, num)


def _training(data: DataConfig, seed: int = 0) -> TrainingImages:
    return TrainingImages(_images(), CIFAR, data, seed, CPU)


@pytest.mark.parametrize("num_classes", [2, 10, 100])
@pytest.mark.parametrize("seed", range(5))
def test_pairing_classes_twice_is_the_identity_and_no_class_pairs_itself(
    num_classes: int, seed: int
) -> None:
    paired = pair_classes(num_classes, seed)
    classes = torch.arange(num_classes)
    assert torch.equal(paired[paired], classes)
    assert (paired != classes).all()


def test_a_view_partner_is_drawn_from_the_whole_paired_class() -> None:
    labels = torch.arange(4).repeat_interleave(torch.tensor([1, 2, 3, 4])).repeat(300)
    paired = pair_classes(4, 1)
    partners = draw_view_partners(labels, paired, seed=1)
    assert torch.equal(labels[partners], paired[labels])
    for label in range(4):
        wanted = torch.nonzero(labels == paired[label]).flatten()
        drawn = partners[labels == label]
        assert len(drawn.unique()) > 0.4 * min(len(drawn), len(wanted))


def test_a_held_out_image_is_unscaled_and_its_second_view_is_zero() -> None:
    images = _images()
    seen = EvaluationImages(images, CIFAR, DataConfig(name="cifar10", views="concat"), CPU)[:4]
    torch.testing.assert_close(seen[:, :3], NormalisedPixels(images, CIFAR, 1, CPU)[:4])
    assert (seen[:, 3:] == 0).all()


@pytest.mark.parametrize("augment", [Crop(), CropFlip()], ids=str)
def test_moves_are_uniform_and_depend_on_the_epoch_but_not_on_the_law(augment: Crop) -> None:
    config = TrainConfig(
        data=DataConfig(name="cifar10", augment=augment),
        epochs=2,
        batch_size=100,
    )
    images = TrainingImages(_images(2000), CIFAR, config.data, 0, CPU)
    draws = [Draws.for_training(replace(config, mix=MixConfig(law=law)), epoch, images)
             for epoch, law in ((0, Erm()), (0, Beta(alpha=1.0)), (1, Erm()))]  # fmt: skip
    first, again, later = (draw.augmentation for draw in draws)
    assert again is not None
    assert later is not None
    assert torch.equal(first, again), "at one seed every arm sees the same crops"
    assert not torch.equal(first, later)
    assert not torch.equal(first[0], first[1]), "a partner has crops of its own"
    for axis in (0, 1):
        counts = torch.bincount(first[..., axis].flatten(), minlength=9)
        assert len(counts) == 9
        assert stats.chisquare(counts.numpy()).pvalue > 1e-3
    share = float(first[..., 2].double().mean())
    assert share == (pytest.approx(0.5, abs=0.03) if augment == CropFlip() else 0)
    assert Draws.for_probing(config, 0, images).augmentation is None


def test_label_noise_changes_training_labels_and_neither_view_partners_nor_test_labels() -> None:
    data = DataConfig(name="cifar10", views="concat", label_noise=0.5)
    noisy, clean = _training(data), _training(DataConfig(name="cifar10", views="concat"))
    assert 0 < int((noisy.labels != clean.labels).sum()) < 40
    everything, gamma = torch.arange(40), torch.full((40,), 0.5)
    torch.testing.assert_close(noisy.batch(everything, gamma), clean.batch(everything, gamma))
    assert torch.equal(EvaluationImages(_images(), CIFAR, data, CPU).labels, _images().labels)


def test_train_fraction_selects_the_same_subset_as_num_train() -> None:
    by_fraction = _training(DataConfig(name="cifar10", train_fraction=0.3))
    by_size = _training(DataConfig(name="cifar10", num_train=12))
    assert len(by_fraction) == 12
    assert torch.equal(by_fraction.labels, by_size.labels)
    assert len(_training(DataConfig(name="cifar10", train_fraction=1e-9))) == 1


@pytest.mark.parametrize("size", [10, 13, 20, 40])
def test_a_balanced_subset_has_as_many_images_of_each_class(size: int) -> None:
    images = _images(400)
    data = DataConfig(name="cifar10", num_train=size, balanced=True)

    def labels(seed: int, data: DataConfig = data) -> Tensor:
        return TrainingImages(images, CIFAR, data, seed, CPU).labels

    counts = torch.bincount(labels(0), minlength=10)
    assert counts.sum() == size
    assert counts.max() - counts.min() <= 1
    half = DataConfig(name="cifar10", num_train=size // 2, balanced=True)
    assert torch.equal(labels(0, half), labels(0)[: size // 2]), "a larger one holds a smaller one"


def test_an_added_second_view_shares_the_channels_and_is_used_only_in_training() -> None:
    data = DataConfig(name="cifar10", views="added")
    views, alone = _training(data), NormalisedPixels(_images(), CIFAR, 1, CPU)
    partners = draw_view_partners(_images().labels, pair_classes(10, 0), 0)
    index, gamma = torch.tensor([7, 2]), torch.tensor([0.25, 0.9])
    weight = gamma.view(-1, 1, 1, 1)
    expected = weight * alone[index] + (1 - weight) * alone[partners[index]]
    torch.testing.assert_close(views.batch(index, gamma), expected)
    assert views.shape == (3, 32, 32)
    held_out = EvaluationImages(_images(), CIFAR, data, CPU)
    torch.testing.assert_close(held_out[slice(0, 3)], alone[:3])


def test_orthogonal_views_are_equal_within_a_class_and_orthogonal_between_classes() -> None:
    data = DataConfig(name="cifar10", views="orthogonal", label_noise=0.3)
    views = _training(data)
    batch = views.batch(torch.arange(40), torch.zeros(40))
    assert (batch[:, :3] == 0).all()
    beside = batch[:, 3:].flatten(1)
    labels = _images().labels
    products = beside @ beside.T / beside.shape[1]
    torch.testing.assert_close(products, (labels[:, None] == labels).float(), atol=1e-4, rtol=0)
    held_out = EvaluationImages(_images(), CIFAR, data, CPU)[slice(0, 2)]
    assert held_out.shape == (2, 6, 32, 32)
    assert (held_out[:, 3:] == 0).all()
