import numpy as np
import pytest
import torch

from mixup_core.mixing.smoothmix import SmoothMix


def test_the_weight_of_the_partner_is_gaussian_in_the_distance_from_the_centre() -> None:
    own, beside = torch.zeros(1, 1, 5, 4), torch.ones(1, 1, 5, 4)
    images, weight = SmoothMix().mix(own, beside, torch.ones(1), torch.tensor([[1.0, 2.0, 1.5]]))
    rows, columns = np.mgrid[:5, :4]
    expected = np.exp(-((rows - 1) ** 2 + (columns - 2) ** 2) / (2 * 1.5**2))
    np.testing.assert_allclose(images[0, 0].numpy(), expected, rtol=1e-6)
    assert float(weight[0]) == pytest.approx(1 - expected.mean())


def test_widths_range_from_the_narrowest_at_lam_1_to_the_widest_at_lam_0() -> None:
    drawn = SmoothMix().draw(np.array([1.0, 0.5, 0.0]), (32, 28), np.random.default_rng(0))
    assert drawn[:, 2].tolist() == [8, 12, 16]
    assert (drawn[:, :2] < [32, 28]).all()
