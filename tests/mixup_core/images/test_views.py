import torch

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
from tests.mixup_core.small_files import noise_images

CPU = torch.device("cpu")
CIFAR = DATASETS["cifar10"].info


def _images(num: int = 40) -> Images:
    return noise_images(CIFAR, num)


def _training(data: DataConfig, seed: int = 0) -> TrainingImages:
    return TrainingImages(_images(), CIFAR, data, seed, CPU)


def test_label_noise_changes_training_labels_and_neither_view_partners_nor_test_labels() -> None:
    data = DataConfig(name="cifar10", views="concat", label_noise=0.5)
    noisy, clean = _training(data), _training(DataConfig(name="cifar10", views="concat"))
    assert 0 < int((noisy.labels != clean.labels).sum()) < 40
    everything, gamma = torch.arange(40), torch.full((40,), 0.5)
    torch.testing.assert_close(noisy.batch(everything, gamma), clean.batch(everything, gamma))
    assert torch.equal(EvaluationImages(_images(), CIFAR, data, CPU).labels, _images().labels)


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
