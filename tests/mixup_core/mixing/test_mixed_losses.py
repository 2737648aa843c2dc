import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot
from torchvision.transforms import v2

from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.mixing.linear import mix
from mixup_core.mixing.mixed_losses import loss_floor, mixed_cross_entropies, mixed_squared_errors
from mixup_core.mixing.partners import EpochOrder, FromBatch


@pytest.mark.parametrize("lam", [torch.tensor(0.25), torch.tensor([0.0, 0.25, 1.0])])
def test_mixed_squared_errors_are_squared_distances_to_the_mixed_target(lam: torch.Tensor) -> None:
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


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


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
def test_the_floor_of_ten_balanced_classes_matches_the_published_values(
    law: Law, floor: float
) -> None:
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
        partners = FromBatch().draw(
            EpochOrder(indices=order, batch_sizes=[3, 3], shown=torch.Tensor.float), rng
        )
        drawn.append(float((labels[order] != labels[partners]).double().mean()))
    expected = float(np.mean(drawn)) * math.log(2)
    assert loss_floor(Midpoint(), labels, "permutation", 3) == pytest.approx(expected, rel=0.03)


def test_the_permutation_floor_counts_one_self_pair_per_batch() -> None:
    labels = torch.tensor([0, 1, 2, 3, 4])  # who meets another meets another class
    for batch_size, batches in ((2, 3), (4, 2), (5, 1), (9, 1)):
        floor = loss_floor(Midpoint(), labels, "permutation", batch_size)
        assert floor == pytest.approx((1 - batches / 5) * math.log(2))
    alone = torch.tensor([0])
    assert loss_floor(Midpoint(), alone, "permutation", 4) == 0
    assert loss_floor(Midpoint(), alone, "dataset", 4) == 0
    assert Erm().label_entropy() == 0


def test_mixing_and_its_loss_agree_with_torchvision_mixup() -> None:
    """v2.MixUp pairs by roll(1) and does not report its weight; a one-pixel image reveals it."""
    rng = torch.Generator().manual_seed(1)
    images = torch.rand(6, 3, 5, 5, generator=rng)
    images[0, 0, 0, 0], images[-1, 0, 0, 0] = 1.0, 0.0
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    logits = torch.randn(6, 4, generator=rng)
    mixed, targets = v2.MixUp(alpha=0.7, num_classes=4)(images, labels)
    lam = mixed[0, 0, 0, 0]

    torch.testing.assert_close(mix(images, images.roll(1, 0), lam), mixed)
    loss = mixed_cross_entropies(logits, labels, labels.roll(1, 0), lam).mean()
    torch.testing.assert_close(loss, cross_entropy(logits, targets))


def test_mixed_images_and_loss_with_one_weight_per_image_match_the_formula() -> None:
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
    loss = mixed_cross_entropies(logits, labels, partner_labels, lam).mean()
    torch.testing.assert_close(loss, cross_entropy(logits, soft))
