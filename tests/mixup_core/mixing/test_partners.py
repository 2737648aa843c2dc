import numpy as np
import torch
from scipy import stats

from mixup_core.mixing.partners import draw_partners


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


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
