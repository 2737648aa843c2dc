"""Patches: their means, and images that are assembled from them."""

import torch

from mixup_core.mixing.patches import arranged, patch_means


def test_patch_means_are_the_means_of_each_rectangle() -> None:
    values = torch.arange(24.0).view(1, 4, 6)
    assert torch.equal(patch_means(values, (2, 3))[0, 0], torch.tensor([3.5, 5.5, 7.5]))
    assert patch_means(values, (4, 6)).equal(values)


def test_patches_are_arranged_at_their_given_places() -> None:
    images = torch.rand(2, 3, 4, 6)
    stays = torch.arange(6).expand(2, -1)
    assert torch.equal(arranged(images, stays, (2, 3)), images)
    moved = arranged(images, torch.tensor([[5, 1, 2, 3, 4, 0], [0] * 6]), (2, 3))
    assert torch.equal(moved[0, :, :2, :2], images[0, :, 2:, 4:])
    assert torch.equal(moved[0, :, 2:, 4:], images[0, :, :2, :2])
    assert torch.equal(moved[0, :, :2, 2:], images[0, :, :2, 2:])
    assert torch.equal(moved[1, :, 2:, 2:4], images[1, :, :2, :2])
