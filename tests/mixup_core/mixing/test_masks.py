import numpy as np
import torch

from mixup_core.mixing.masks import boxes, draw_kept, outside, sides


def test_box_sides_are_rounded_down() -> None:
    assert sides(np.array([0.0, 0.5, 0.99, 1.0]), (10, 7)).tolist() == [
        [0, 0],
        [5, 3],
        [9, 6],
        [10, 7],
    ]


def test_boxes_are_clipped_at_the_borders() -> None:
    centres = np.array([[0, 0], [4, 5], [9, 6]])
    lengths = np.array([[4, 4], [4, 2], [5, 4]])
    assert boxes(centres, lengths, (10, 7)).tolist() == [[0, 2, 0, 2], [2, 6, 4, 6], [7, 10, 4, 7]]


def test_the_outside_mask_is_zero_only_inside_the_box() -> None:
    mask = outside(torch.tensor([[1, 3, 0, 2], [0, 0, 0, 0]]), torch.zeros(2, 1, 4, 3))
    expected = torch.ones(2, 4, 3)
    expected[0, 1:3, 0:2] = 0
    assert torch.equal(mask, expected)


def test_parts_are_kept_with_probability_lam() -> None:
    lam = np.array([[0.0, 0.5], [1.0, 0.25]])
    kept = np.mean([draw_kept(lam, 50, np.random.default_rng(s)) for s in range(100)], axis=(0, 3))
    np.testing.assert_allclose(kept, lam, atol=0.03)
    assert kept[0, 0] == 0
    assert kept[1, 0] == 1
