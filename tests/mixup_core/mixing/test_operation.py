"""Tests that every operation, built-in or registered by a plugin, has to pass."""

import numpy as np
import pytest
import torch
from torch import Tensor

from mixup_core.config.building import parsed
from mixup_core.mixing.operation import Operation

SIZE = (10, 12)
OPERATIONS = sorted(Operation.catalogue)


def _images(batch: int = 6) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    own, beside = torch.randn(2, batch, 3, *SIZE, generator=rng)
    return own, beside


def _drawn(operation: Operation, lam: Tensor, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(operation.draw(lam.double().numpy(), SIZE, rng))


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_drawn_row_per_batch_equals_the_same_row_for_each_image(name: str) -> None:
    operation = parsed(Operation, name)
    own, beside = _images()
    one = _drawn(operation, torch.tensor([0.3]))
    lam = torch.full((6,), 0.3)
    shared = operation.mix(own, beside, lam, one)
    each = operation.mix(own, beside, lam, one.repeat(6, *[1] * (one.dim() - 1)))
    assert torch.equal(shared[0], each[0])
    assert torch.equal(shared[1].expand(6), each[1].expand(6))


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_image_mixed_with_itself_keeps_its_pixels_unless_it_is_resized(name: str) -> None:
    operation = parsed(Operation, name)
    own, _ = _images()
    lam = torch.full((6,), 0.4)
    images, _ = operation.mix(own, own.clone(), lam, _drawn(operation, lam))
    if name == "resizemix":
        assert not torch.equal(images, own)
    else:
        torch.testing.assert_close(images, own)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_mean_label_weight_increases_with_lam(name: str) -> None:
    """On average, a larger weight of an image never gives its label a smaller weight."""
    operation = parsed(Operation, name)
    own, beside = _images(200)
    means = []
    for value in (0.1, 0.5, 0.9):
        lam = torch.full((200,), value)
        means.append(float(operation.mix(own, beside, lam, _drawn(operation, lam))[1].mean()))
    assert means == sorted(means)
    assert means[0] < means[2]


@pytest.mark.parametrize("name", OPERATIONS)
def test_only_manifold_mixing_names_a_hidden_layer(name: str) -> None:
    operation = parsed(Operation, name)
    drawn = _drawn(operation, torch.full((50,), 0.5))
    layers = {operation.layer(drawn[i : i + 1]) for i in range(50)}
    assert max(layers) == operation.deepest_layer
    assert (operation.deepest_layer > 0) == (name == "manifold")
