import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from mixup_core.mixing.resizemix import ResizeMix


@pytest.mark.parametrize("box", [[2, 8, 3, 13], [0, 5, 0, 4], [0, 12, 0, 16], [7, 8, 1, 2]])
def test_the_box_shows_the_whole_partner_resized_by_nearest_pixels(box: list[int]) -> None:
    rng = torch.Generator().manual_seed(0)
    own, beside = torch.randn(2, 3, 2, 12, 16, generator=rng)
    images, weight = ResizeMix().mix(own, beside, torch.ones(3), torch.tensor([box]))
    top, bottom, left, right = box
    expected = own.clone()
    expected[:, :, top:bottom, left:right] = interpolate(beside, (bottom - top, right - left))
    assert torch.equal(images, expected)
    assert float(weight[0]) == pytest.approx(1 - (bottom - top) * (right - left) / (12 * 16))


def test_box_sides_range_from_the_smallest_at_lam_1_to_the_largest_at_lam_0() -> None:
    for lam, side in ((1.0, 4), (0.0, 32), (0.5, 18)):
        drawn = ResizeMix().draw(np.full(300, lam), (40, 40), np.random.default_rng(0))
        assert (drawn[:, 1] - drawn[:, 0]).max() == side
