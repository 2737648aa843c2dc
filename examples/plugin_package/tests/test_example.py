"""The package's own tests, beside `mixsweep check mixsweep-example`."""

import numpy as np
import pytest
import torch
from mixsweep_example.laws import Triangular
from mixsweep_example.operations import Stripes


@pytest.mark.parametrize("mode", [0.0, 0.3, 1.0])
def test_draws_have_the_moments_of_the_triangular_distribution(mode):
    law = Triangular(mode=mode)
    drawn = law.draw(20_000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx((1 + mode) / 3, abs=0.006)
    assert law.mean == pytest.approx((1 + mode) / 3, abs=1e-6)
    assert law.variance == pytest.approx((1 - mode + mode**2) / 18, abs=1e-6)


def test_the_label_weight_of_stripes_is_the_share_of_rows_that_stay():
    rng, lam = np.random.default_rng(0), np.array([0.0, 0.5, 1.0])
    own, beside = torch.zeros(3, 1, 8, 8), torch.ones(3, 1, 8, 8)
    drawn = torch.from_numpy(Stripes(width=3).draw(lam, (8, 8), rng))
    mixed, weight = Stripes(width=3).mix(own, beside, torch.from_numpy(lam).float(), drawn)
    assert torch.equal(1 - mixed.mean(dim=(1, 2, 3)), weight)
    assert weight[0] == 0
    assert weight[2] == 1
