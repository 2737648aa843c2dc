import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.mixing.linear import mix
from mixup_core.mixing.mixed_losses import loss_floor, mixed_cross_entropies, mixed_squared_errors
from mixup_core.mixing.partners import EpochOrder, FromBatch


def test_the_floor_counts_pairs_of_different_classes() -> None:
    labels = torch.tensor([0, 0, 0, 1, 2, 2])
    differ = float((labels[:, None] != labels).double().mean())
    for law, entropy in ((Erm(), 0.0), (Midpoint(), math.log(2)), (Beta(alpha=1.0), 0.5)):
        assert loss_floor(law, labels, "dataset", 3) == pytest.approx(differ * entropy)
    rng = np.random.default_rng(0)
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


@pytest.mark.parametrize("lam", [torch.tensor(0.3), torch.tensor([0.0, 0.25, 0.5, 1.0])])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_mixed_images_and_their_losses_match_the_formulas(
    lam: torch.Tensor, smoothing: float
) -> None:
    rng = torch.Generator().manual_seed(0)
    images, partners = torch.rand(2, 4, 2, 3, 3, generator=rng)
    logits = torch.randn(4, 3, generator=rng)
    labels, partner_labels = torch.tensor([0, 1, 2, 0]), torch.tensor([1, 1, 0, 2])
    weights = lam.expand(4)[:, None]
    expected = weights * images.flatten(1) + (1 - weights) * partners.flatten(1)
    torch.testing.assert_close(mix(images, partners, lam).flatten(1), expected)
    soft = weights * one_hot(labels, 3) + (1 - weights) * one_hot(partner_labels, 3)
    loss = mixed_cross_entropies(logits, labels, partner_labels, lam, smoothing).mean()
    torch.testing.assert_close(loss, cross_entropy(logits, soft, label_smoothing=smoothing))
    squared = mixed_squared_errors(logits, labels, partner_labels, lam)
    torch.testing.assert_close(squared, (logits - soft).square().sum(1))
