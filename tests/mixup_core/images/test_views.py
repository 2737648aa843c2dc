import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d
from torchvision.transforms import v2

from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import CATALOG, DatasetInfo
from mixup_core.images.data.datasets import Images
from mixup_core.images.views import (
    EvaluationImages,
    NormalisedPixels,
    TrainingImages,
    draw_view_partners,
    pair_classes,
)

CPU = torch.device("cpu")
CIFAR = CATALOG["cifar10"]


def _images(num: int = 40, info: DatasetInfo = CIFAR) -> Images:
    rng = torch.Generator().manual_seed(0)
    shape = (num, info.channels, info.image_size, info.image_size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng)
    return Images(pixels=pixels, labels=torch.arange(num) % info.num_classes)


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


def test_every_pairing_of_four_classes_is_equally_likely() -> None:
    partners_of_zero = torch.tensor([int(pair_classes(4, seed)[0]) for seed in range(600)])
    assert torch.bincount(partners_of_zero, minlength=4)[1:].min() > 150


def test_an_odd_number_of_classes_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="even number of classes"):
        pair_classes(3, 0)


def test_a_view_partner_has_the_paired_class_and_is_uniform_over_it() -> None:
    labels = torch.arange(4).repeat_interleave(torch.tensor([1, 2, 3, 4])).repeat(300)
    paired = pair_classes(4, 1)
    partners = draw_view_partners(labels, paired, seed=1)
    assert torch.equal(labels[partners], paired[labels])
    for label in range(4):
        wanted = torch.nonzero(labels == paired[label]).flatten()
        drawn = partners[labels == label]
        assert len(drawn.unique()) > 0.4 * min(len(drawn), len(wanted))


def test_a_class_without_images_is_named() -> None:
    with pytest.raises(ValueError, match=r"without images=\[1\]"):
        draw_view_partners(torch.tensor([0, 2, 3]), pair_classes(4, 0), 0)


def test_pixels_are_normalised_as_torchvision_does() -> None:
    images = _images()
    reference = v2.Compose(
        [v2.ToDtype(torch.float32, scale=True), v2.Normalize(CIFAR.mean, CIFAR.std)]
    )
    seen = NormalisedPixels(images, CIFAR, 1, CPU)[torch.tensor([3, 1])]
    torch.testing.assert_close(seen, reference(images.pixels[[3, 1]]), rtol=1e-5, atol=1e-5)


def test_pooling_comes_after_normalising() -> None:
    images = _images()
    plain = NormalisedPixels(images, CIFAR, 1, CPU)[:5]
    pooled = NormalisedPixels(images, CIFAR, 4, CPU)[:5]
    torch.testing.assert_close(pooled, avg_pool2d(plain, 4), rtol=1e-5, atol=1e-5)


def test_a_training_image_stands_scaled_beside_its_fixed_view_partner() -> None:
    views = _training(DataConfig(name="cifar10", views="concat"))
    alone = NormalisedPixels(_images(), CIFAR, 1, CPU)
    labels = _images().labels
    partners = draw_view_partners(labels, pair_classes(10, 0), 0)
    index, gamma = torch.tensor([7, 2]), torch.tensor([0.25, 0.9])

    batch = views.batch(index, gamma)

    weight = gamma.view(-1, 1, 1, 1)
    assert batch.shape == (2, 6, 32, 32)
    torch.testing.assert_close(batch[:, :3], weight * alone[index])
    torch.testing.assert_close(batch[:, 3:], (1 - weight) * alone[partners[index]])


def test_two_accesses_differ_in_scale_and_keep_the_view_partner() -> None:
    views = _training(DataConfig(name="cifar10", views="concat"))
    index = torch.tensor([5])
    once, again = (views.batch(index, torch.tensor([gamma])) for gamma in (0.5, 0.25))
    torch.testing.assert_close(once[:, :3] / 0.5, again[:, :3] / 0.25)
    torch.testing.assert_close(once[:, 3:] / 0.5, again[:, 3:] / 0.75)


def test_a_scale_of_zero_is_the_mean_pixel_not_black() -> None:
    views = _training(DataConfig(name="cifar10", views="concat"))
    assert (views.batch(torch.tensor([5]), torch.tensor([0.0]))[:, :3] == 0).all()


def test_a_held_out_image_stands_unscaled_beside_zeros() -> None:
    images = _images()
    seen = EvaluationImages(images, CIFAR, DataConfig(name="cifar10", views="concat"), CPU)[:4]
    torch.testing.assert_close(seen[:, :3], NormalisedPixels(images, CIFAR, 1, CPU)[:4])
    assert (seen[:, 3:] == 0).all()


def test_a_subset_is_drawn_per_seed_before_its_view_partners() -> None:
    data = DataConfig(name="cifar10", views="concat", num_train=200)

    def of(seed: int) -> TrainingImages:
        return TrainingImages(_images(400), CIFAR, data, seed, CPU)

    def sample(seed: int) -> Tensor:
        return of(seed).batch(torch.arange(200), torch.full((200,), 0.5))

    assert len(of(0)) == 200
    assert torch.equal(sample(0), sample(0))
    assert not torch.equal(sample(0), sample(1))


def test_a_subset_larger_than_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match=r"data\.num_train <= training images"):
        _training(DataConfig(name="cifar10", num_train=41))
