from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy import stats

from mixup_core.mixing.partners import EpochOrder, FromDataset, Partner, Similar
from mixup_core.rules import RuleError


def _drawn(
    partner: Partner,
    indices: torch.Tensor,
    sizes: Sequence[int],
    images: torch.Tensor,
    seed: int = 0,
) -> torch.Tensor:
    order = EpochOrder(indices=indices, batch_sizes=sizes, shown=lambda index: images[index])
    return partner.draw(order, np.random.default_rng(seed))


def test_partners_of_the_dataset_are_uniform_with_replacement() -> None:
    order = torch.arange(10)
    drawn = torch.stack([_drawn(FromDataset(), order, [10], order, seed) for seed in range(999)])
    assert drawn.shape == (999, 10)
    assert stats.chisquare(torch.bincount(drawn.flatten(), minlength=10).numpy()).pvalue > 1e-3
    assert (drawn == order).any(), "an image may be its own partner"


def test_similar_partners_follow_the_kernel() -> None:
    points = torch.tensor([[0.0], [1.0], [3.0]])
    order = torch.arange(3).repeat(20_000)
    partners = _drawn(Similar(bandwidth=0.5), order, [3] * 20_000, points)
    square = (points - points.T).square()
    mean = (1 + 9 + 4) / 3
    chances = torch.exp(-square / (2 * 0.5**2 * mean)).fill_diagonal_(0)
    chances /= chances.sum(1, keepdim=True)
    for image in range(3):
        met = torch.bincount(partners[order == image], minlength=3) / 20_000
        torch.testing.assert_close(met, chances[image], atol=0.015, rtol=0)


@pytest.mark.parametrize("bandwidth", [1e-6, 1e6])
def test_similar_partners_stay_in_their_batch_at_the_ends_of_the_bandwidth(
    bandwidth: float,
) -> None:
    images = torch.tensor([[0.0], [1.0], [3.0], [5.0], [5.0], [5.0]])
    partners = _drawn(Similar(bandwidth=bandwidth), torch.arange(6), [3, 3], images)
    assert (partners // 3).tolist() == [0, 0, 0, 1, 1, 1]
    for beyond in (bandwidth**33, bandwidth**1.1):
        with pytest.raises(RuleError, match="bandwidth"):
            Similar(bandwidth=beyond)


def test_similar_partners_stay_in_their_batch_and_a_single_image_is_its_own_partner() -> None:
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    images = torch.rand(9, 2, 3, generator=torch.Generator().manual_seed(1))
    partners = _drawn(Similar(), order, [4, 4, 1], images)
    for own, partner in zip(order.split(4), partners.split(4), strict=True):
        assert set(partner.tolist()) <= set(own.tolist())
    assert (partners != order)[:8].all()
    assert partners[8] == order[8]
    assert len(_drawn(Similar(), order, [9], torch.zeros(9, 2)).unique()) > 1
