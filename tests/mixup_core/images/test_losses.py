"""Losses of mixed images against their definitions."""

import pytest
import torch
from torch.nn.functional import one_hot

from mixup_core.images.losses import CrossEntropy, SquaredError
from mixup_core.laws import Erm, Midpoint


def test_the_floor_of_squared_error_is_0_and_of_cross_entropy_the_label_entropy() -> None:
    labels = torch.arange(4)
    assert SquaredError().floor(Midpoint(), labels, "dataset", 2) == 0
    entropy = 0.75 * Midpoint().label_entropy()
    assert CrossEntropy().floor(Midpoint(), labels, "dataset", 2) == pytest.approx(entropy)
    assert CrossEntropy().floor(Erm(), labels, "dataset", 2) == 0


def test_label_smoothing_spreads_its_share_over_all_classes() -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    labels, partners = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 1, 0, 2, 0])
    lam = torch.linspace(0, 1, 5)
    target = lam[:, None] * one_hot(labels, 4) + (1 - lam[:, None]) * one_hot(partners, 4)
    expected = -((0.8 * target + 0.2 / 4) * logits.log_softmax(1)).sum(1)
    loss = CrossEntropy(smoothing=0.2)
    torch.testing.assert_close(loss.per_image(logits, labels, partners, lam), expected)
    assert loss.lacks_floor is not None
    assert CrossEntropy().lacks_floor is None
