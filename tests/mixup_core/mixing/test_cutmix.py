import numpy as np
import pytest
import torch
from torchvision.transforms import v2

from mixup_core.mixing.cutmix import CutMix


def test_cutmix_replaces_a_box_and_weights_the_label_by_the_remaining_area() -> None:
    own, beside = torch.zeros(1, 1, 4, 5), torch.ones(1, 1, 4, 5)
    images, weight = CutMix().mix(own, beside, torch.ones(1), torch.tensor([[1, 3, 2, 5]]))
    expected = torch.zeros(4, 5)
    expected[1:3, 2:5] = 1
    assert torch.equal(images[0, 0], expected)
    assert float(weight[0]) == pytest.approx(1 - 6 / 20)


@pytest.mark.parametrize("lam", [0.0, 0.19, 0.51, 1.0])
def test_box_sides_before_clipping_follow_from_lam(lam: float) -> None:
    drawn = CutMix().draw(np.full(500, lam), (32, 32), np.random.default_rng(0))
    lengths = drawn[:, 1::2] - drawn[:, ::2]
    assert lengths.max(initial=0) == 2 * (int(32 * (1 - lam) ** 0.5) // 2)


def test_cutmix_agrees_with_torchvision() -> None:
    """v2.CutMix pairs by roll(1) and does not report its box, which is where pixels changed."""
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    compared = 0
    for seed in range(20):
        with torch.random.fork_rng():
            torch.random.default_generator.manual_seed(seed)
            expected, targets = v2.CutMix(num_classes=5)(images, torch.arange(5))
        changed = (expected != images).any(1).any(0)
        if not changed.any():
            continue
        rows, columns = torch.nonzero(changed.any(1)), torch.nonzero(changed.any(0))
        box = [int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1]
        found, weight = CutMix().mix(images, images.roll(1, 0), torch.ones(5), torch.tensor([box]))
        assert torch.equal(found, expected)
        assert float(weight[0]) == pytest.approx(float(targets[0, 0]))
        compared += 1
    assert compared > 10
