"""Reference pipeline: its images, weights, partners and losses are those of the formula."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.data.pixels import Images
from mixup_core.images.views import draw_view_partners, pair_classes
from mixup_core.laws import Beta, Erm, Law, Midpoint
from tests.bench.gpu.reference import ConcatenatedViews, batches, train_epoch

NUM, CLASSES = 30, 4
INFO = DatasetInfo(
    title="patterns", num_train=NUM, num_test=0, num_classes=CLASSES, channels=2, image_size=3,
    mean=(0.5, 0.25), std=(0.5, 0.125), smallest_class=7,
)  # fmt: skip
CPU = torch.device("cpu")


def images_of(num: int = NUM) -> Images:
    rng = np.random.default_rng(0)
    return Images.of_arrays(
        rng.integers(0, 256, (num, 2, 3, 3), dtype=np.uint8), np.arange(num) % CLASSES
    )


class Marked(ConcatenatedViews):
    """Dataset in which image k is 1 at pixel k only, so that a mixed image shows its sources."""

    def __init__(self, num: int = NUM) -> None:
        super().__init__(images_of(num), INFO, seed=0)
        self.images = torch.eye(num)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], self.labels[index]


@pytest.mark.parametrize("seed", [0, 5])
def test_concatenated_views_are_each_image_and_its_view_partner_normalised(seed: int) -> None:
    images = images_of()
    data = ConcatenatedViews(images, INFO, seed)
    partners = draw_view_partners(images.labels, pair_classes(CLASSES, seed), seed).numpy()
    mean, std = (np.array(part).reshape(1, 2, 1, 1) for part in (INFO.mean, INFO.std))
    shown = (images.pixels.numpy() / 255 - mean) / std
    assert data.images.shape == (NUM, 4, 3, 3)
    np.testing.assert_allclose(data.images[:, :2].numpy(), shown, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(data.images[:, 2:].numpy(), shown[partners], rtol=1e-5, atol=1e-6)
    assert (len(data), data.labels) == (NUM, images.labels.tolist())


def test_each_access_scales_the_two_views_by_gamma_and_1_minus_gamma() -> None:
    data = ConcatenatedViews(images_of(), INFO, seed=0)
    before = data.images.clone()
    gammas = []
    for index in range(NUM):
        image, label = data[index]
        own, beside = before[index][:2], before[index][2:]
        gamma = float((image[:2] * own).sum() / own.square().sum())
        torch.testing.assert_close(image[:2], gamma * own)
        torch.testing.assert_close(image[2:], (1 - gamma) * beside)
        assert label == index % CLASSES
        gammas.append(gamma)
    assert torch.equal(data.images, before)
    assert all(-1e-6 <= gamma < 1 + 1e-6 for gamma in gammas)
    assert max(gammas) - min(gammas) > 0.5, "30 uniform draws are never this near to each other"
    again, _ = data[0]
    assert not torch.equal(again, data[0][0]), "drawn anew at each access"


def test_erm_batches_contain_each_image_once_per_epoch_in_a_new_order() -> None:
    data, orders = Marked(), []
    for _ in range(2):
        sizes, order = [], []
        for images, labels, partner_labels, lam in batches(data, 8, Erm()):
            assert lam == 1.0
            assert partner_labels is labels
            assert images.max(1).values.eq(1).all()
            sizes.append(len(images))
            order += images.argmax(1).tolist()
            assert labels.tolist() == [index % CLASSES for index in order[-len(labels) :]]
        assert sizes == [8, 8, 8, 6]
        assert sorted(order) == list(range(NUM))
        orders.append(order)
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


def ends(images: Tensor, lam: float, own: list[int]) -> list[int]:
    """Return the partner of each mixed image, given its own image."""
    found = []
    for image, index in zip(images, own, strict=True):
        rest = image.clone()
        rest[index] -= lam
        torch.testing.assert_close(rest.sum(), torch.tensor(1 - lam), atol=1e-5, rtol=0)
        found.append(int(rest.argmax()))
        torch.testing.assert_close(rest[found[-1]], rest.sum(), atol=1e-5, rtol=0)
    return found


@pytest.mark.parametrize("law", [Midpoint(), Beta(alpha=1.0), Beta(alpha=8.0)], ids=str)
def test_a_mixed_batch_combines_images_and_partners_with_one_weight_per_batch(
    law: Law,
) -> None:
    data, lams, partners = Marked(CLASSES), [], []
    for _ in range(40):
        ((images, labels, partner_labels, lam),) = batches(data, CLASSES, law)
        assert sorted(labels.tolist()) == list(range(CLASSES))  # of 4 images each is its label
        assert ends(images, lam, labels.tolist()) == partner_labels.tolist()
        lams.append(lam)
        partners += partner_labels.tolist()
    assert set(partners) == set(range(CLASSES)), "any image may be a partner"
    if law == Midpoint():
        assert set(lams) == {0.5}
    else:
        assert all(0 <= lam <= 1 for lam in lams)
        assert len(set(lams)) == 40, "one weight for each batch"


def test_partners_are_drawn_from_all_images_and_not_from_the_batch() -> None:
    drawn = -torch.ones(NUM)  # each is once an image of its own
    for images, *_ in batches(Marked(), 3, Midpoint()):
        drawn += (images > 0).sum(0) + (images > 0.75).sum(0)  # or both ends of one
    assert drawn.sum() == NUM
    assert drawn.min() == 0
    assert (drawn > 0).sum() > 8, "30 uniform draws of 30 are never so few"


def test_beta_weights_with_a_large_alpha_are_near_one_half() -> None:
    lams = [lam for *_, lam in batches(Marked(), 2, Beta(alpha=1e5))]
    assert max(abs(lam - 0.5) for lam in lams) < 0.01  # 9 standard deviations


class Seen(nn.Module):
    """A linear network that records its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(NUM, CLASSES)
        self.shown: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        assert self.training
        self.shown.append(images)
        logits: Tensor = self.layer(images)
        return logits


def resting(network: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(network.parameters(), lr=0.0)


def test_the_epoch_loss_is_the_mean_over_images_for_any_batch_size() -> None:
    network = Seen().eval()
    data = Marked()
    expected = cross_entropy(network.layer(data.images), torch.tensor(data.labels))
    for batch_size in (1, 8, 29, NUM):
        found = train_epoch(network, resting(network), data, batch_size, Erm(), CPU)
        assert found == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_loss_of_a_mixed_image_is_the_weighted_loss_of_both_labels() -> None:
    network, data = Seen(), Marked()
    found = train_epoch(network, resting(network), data, 7, Midpoint(), CPU)
    shown = torch.cat(network.shown)
    logits = network.layer(shown)
    expected = 0.0
    for image, scores in zip(shown, logits, strict=True):
        (places,) = image.nonzero(as_tuple=True)
        labels = torch.tensor([data.labels[place] for place in places.tolist()])
        expected += float(cross_entropy(scores.expand(len(labels), -1), labels).detach()) / NUM
    assert found == pytest.approx(expected, rel=1e-5)


class Alike(Marked):
    """Dataset of equal images of class 1, so that mixing does not change a batch."""

    def __init__(self, num: int) -> None:
        super().__init__()
        self.labels = [1] * num

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[0], self.labels[index]


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=1.0)], ids=str)
@pytest.mark.parametrize("steps", [1, 3])
def test_each_batch_takes_one_sgd_step_with_its_own_gradient(law: Law, steps: int) -> None:
    network, data = Seen(), Alike(2 * steps)
    before = network.layer.weight.detach().clone()
    own, bias = before[:, 0], network.layer.bias.detach().clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    train_epoch(network, optimizer, data, 2, law, CPU)
    target = torch.zeros(CLASSES).index_fill(0, torch.tensor([1]), 1.0)
    for _ in range(steps):
        slope = (own + bias).softmax(0) - target  # of cross entropy, by the logits
        own, bias = own - 0.5 * slope, bias - 0.5 * slope
    assert len(network.shown) == steps
    torch.testing.assert_close(network.layer.bias.detach(), bias)
    torch.testing.assert_close(network.layer.weight.detach()[:, 0], own)
    torch.testing.assert_close(network.layer.weight.detach()[:, 1:], before[:, 1:])
