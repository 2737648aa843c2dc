import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.nn.functional import cross_entropy, one_hot
from torchvision.transforms import v2

from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.mixing import (
    draw_lambdas,
    draw_partners,
    label_entropy,
    loss_floor,
    mix,
    mixed_cross_entropy,
    mixed_squared_errors,
)


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_beta_weights_have_the_moments_and_the_distribution_of_their_law(alpha: float) -> None:
    lam = draw_lambdas(Beta(alpha=alpha), 20_000, _rng()).double().numpy()
    assert lam.mean() == pytest.approx(0.5, abs=0.01)
    assert lam.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.05)
    assert stats.kstest(lam, stats.beta(alpha, alpha).cdf).statistic < 0.02, (
        "1.63 / sqrt(n) + float32"
    )


def test_erm_and_midpoint_draw_nothing() -> None:
    rng = _rng()
    assert draw_lambdas(Erm(), 3, rng).tolist() == [1, 1, 1]
    assert draw_lambdas(Midpoint(), 3, rng).tolist() == [0.5, 0.5, 0.5]
    assert rng.random() == _rng().random()


@pytest.mark.parametrize("alpha", [1e-3, 1e4])
def test_extreme_laws_stay_inside_the_unit_interval(alpha: float) -> None:
    lam = draw_lambdas(Beta(alpha=alpha), 1000, _rng())
    assert lam.isfinite().all()
    assert (lam >= 0).all()
    assert (lam <= 1).all()


def test_partners_of_the_dataset_are_uniform_with_replacement() -> None:
    partners = draw_partners("dataset", torch.arange(10), [10], _rng())
    many = torch.cat(
        [draw_partners("dataset", torch.arange(10), [10], _rng(i)) for i in range(999)]
    )
    assert partners.shape == (10,)
    assert stats.chisquare(torch.bincount(many, minlength=10).numpy()).pvalue > 1e-3
    assert (many.view(-1, 10) == torch.arange(10)).any(), "an image may be its own partner"


def test_partners_by_permutation_stay_in_their_batch() -> None:
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    partners = draw_partners("permutation", order, [4, 4, 2], _rng())
    for own, partner in zip(order.split(4), partners.split(4), strict=True):
        assert sorted(own.tolist()) == sorted(partner.tolist())


def test_mixing_and_its_loss_agree_with_torchvision_mixup() -> None:
    """v2.MixUp pairs by roll(1) and does not tell its weight: recover it from a one-pixel probe."""
    rng = torch.Generator().manual_seed(1)
    images = torch.rand(6, 3, 5, 5, generator=rng)
    images[0, 0, 0, 0], images[-1, 0, 0, 0] = 1.0, 0.0
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    logits = torch.randn(6, 4, generator=rng)
    mixed, targets = v2.MixUp(alpha=0.7, num_classes=4)(images, labels)
    lam = mixed[0, 0, 0, 0]

    torch.testing.assert_close(mix(images, images.roll(1, 0), lam), mixed)
    loss = mixed_cross_entropy(logits, labels, labels.roll(1, 0), lam)
    torch.testing.assert_close(loss, cross_entropy(logits, targets))


def test_one_weight_each_mixes_like_one_weight_per_image() -> None:
    rng = torch.Generator().manual_seed(0)
    images, partners = torch.rand(2, 4, 2, 3, 3, generator=rng)
    logits = torch.randn(4, 3, generator=rng)
    labels, partner_labels = torch.tensor([0, 1, 2, 0]), torch.tensor([1, 1, 0, 2])
    lam = torch.tensor([0.0, 0.25, 0.5, 1.0])
    mixed = mix(images, partners, lam)
    for index in range(4):
        expected = lam[index] * images[index] + (1 - lam[index]) * partners[index]
        torch.testing.assert_close(mixed[index], expected)
    soft = lam[:, None] * one_hot(labels, 3) + (1 - lam[:, None]) * one_hot(partner_labels, 3)
    loss = mixed_cross_entropy(logits, labels, partner_labels, lam)
    torch.testing.assert_close(loss, cross_entropy(logits, soft))


@pytest.mark.parametrize("lam", [torch.tensor(0.25), torch.tensor([0.0, 0.25, 1.0])])
def test_squared_errors_are_distances_from_the_mixed_target(lam: torch.Tensor) -> None:
    logits = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 2.0, 1.0]])
    labels, partners = torch.tensor([0, 1, 2]), torch.tensor([2, 1, 1])
    weights = lam.expand(3)
    expected = [
        sum(
            (float(logit) - float(w) * (c == own) - (1 - float(w)) * (c == other)) ** 2
            for c, logit in enumerate(row)
        )
        for row, own, other, w in zip(
            logits, labels.tolist(), partners.tolist(), weights, strict=True
        )
    ]
    found = mixed_squared_errors(logits, labels, partners, lam)
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_label_entropy_is_the_integral_it_stands_for(alpha: float) -> None:
    def weighted(lam: float) -> float:
        entropy = -lam * math.log(lam) - (1 - lam) * math.log(1 - lam)
        return entropy * float(stats.beta(alpha, alpha).pdf(lam))

    expected = 2 * integrate.quad(weighted, 0, 0.5)[0]
    assert label_entropy(Beta(alpha=alpha)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("law", "floor"),
    [
        (Erm(), 0.0),
        (Beta(alpha=0.2), 0.20489),
        (Beta(alpha=0.5), 0.34766),
        (Beta(alpha=1.0), 0.45),
        (Beta(alpha=2.0), 0.525),
        (Beta(alpha=8.0), 0.59658),
        (Beta(alpha=20.0), 0.61272),
        (Beta(alpha=32.0), 0.61686),
        (Beta(alpha=1024.0), 0.62361),
        (Midpoint(), 0.9 * math.log(2)),
    ],
)
def test_the_floor_of_ten_balanced_classes_is_the_published_one(law: Law, floor: float) -> None:
    labels = torch.arange(10).repeat(7)
    assert loss_floor(law, labels, "dataset", 5) == pytest.approx(floor, abs=1e-5)


def test_the_floor_counts_pairs_of_different_classes() -> None:
    labels = torch.tensor([0, 0, 0, 1, 2, 2])
    differ = (labels[:, None] != labels).double().mean()
    assert loss_floor(Midpoint(), labels, "dataset", 3) == pytest.approx(
        float(differ) * math.log(2)
    )
    rng = _rng()
    drawn = []
    for _ in range(4000):
        order = torch.from_numpy(rng.permutation(6))
        partners = draw_partners("permutation", order, [3, 3], rng)
        drawn.append(float((labels[order] != labels[partners]).double().mean()))
    expected = float(np.mean(drawn)) * math.log(2)
    assert loss_floor(Midpoint(), labels, "permutation", 3) == pytest.approx(expected, rel=0.03)


def test_one_image_of_every_batch_meets_itself_the_short_last_one_included() -> None:
    labels = torch.tensor([0, 1, 2, 3, 4])  # who meets another meets another class
    for batch_size, batches in ((2, 3), (4, 2), (5, 1), (9, 1)):
        floor = loss_floor(Midpoint(), labels, "permutation", batch_size)
        assert floor == pytest.approx((1 - batches / 5) * math.log(2))
    alone = torch.tensor([0])
    assert loss_floor(Midpoint(), alone, "permutation", 4) == 0
    assert loss_floor(Midpoint(), alone, "dataset", 4) == 0
    assert label_entropy(Erm()) == 0
