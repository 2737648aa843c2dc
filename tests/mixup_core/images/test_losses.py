"""Losses of mixed images against their definitions."""

import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from mixup_core.images.config import TrainConfig
from mixup_core.images.losses.class_weights import Balanced, Given
from mixup_core.images.losses.cross_entropy import CrossEntropy
from mixup_core.images.losses.loss import Loss
from mixup_core.images.losses.squared_error import SquaredError
from mixup_core.images.losses.weighted import Weighted
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.rules import RuleError


@pytest.mark.parametrize("loss", [CrossEntropy(), SquaredError()])
def test_the_loss_of_an_image_uses_its_mixed_label(loss: Loss) -> None:
    rng = torch.Generator().manual_seed(0)
    logits, lam = torch.randn(5, 3, generator=rng), torch.rand(5, generator=rng)
    labels, partners = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([1, 1, 0, 2, 0])
    weight = lam[:, None]
    target = weight * one_hot(labels, 3) + (1 - weight) * one_hot(partners, 3)
    expected = (
        cross_entropy(logits, target, reduction="none")
        if loss == CrossEntropy()
        else (logits - target).square().sum(1)
    )
    torch.testing.assert_close(loss.per_image(logits, labels, partners, lam), expected)


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
    assert loss.floor(Beta(alpha=1.0), labels, "dataset", 5) is None
    assert CrossEntropy().floor(Beta(alpha=1.0), labels, "dataset", 5) is not None


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_class_weights_match_pytorch_for_mixed_labels(
    smoothing: float,
) -> None:
    rng = torch.Generator().manual_seed(0)
    logits, lam = torch.randn(6, 3, generator=rng), torch.rand(6, generator=rng)
    labels, partners = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([1, 1, 0, 2, 0, 1])
    values = (0.5, 1.0, 3.0)
    loss = Weighted(weights=torch.tensor(values), smoothing=smoothing)
    target = lam[:, None] * one_hot(labels, 3) + (1 - lam[:, None]) * one_hot(partners, 3)
    theirs = nn.CrossEntropyLoss(weight=torch.tensor(values), label_smoothing=smoothing)
    ours = loss.per_image(logits, labels, partners, lam)
    torch.testing.assert_close(ours.mean(), theirs(logits, target))
    unmixed = loss.per_image(logits, labels, partners, torch.ones(6))
    theirs.reduction = "none"
    torch.testing.assert_close(unmixed, theirs(logits, labels))
    assert loss.floor(Erm(), labels, "dataset", 2) is None


def test_balanced_class_weights_match_scikit_learn() -> None:
    labels = torch.tensor([0] * 5 + [1] * 2 + [2])
    theirs = compute_class_weight("balanced", classes=torch.arange(3).numpy(), y=labels.numpy())
    config = TrainConfig(epochs=1, batch_size=4, class_weights=Balanced())
    loss = config.loss_on(labels, 3)
    assert isinstance(loss, Weighted)
    torch.testing.assert_close(loss.weights, torch.tensor(theirs, dtype=torch.float32))
    assert Balanced().of([5, 0, 5]) == (1.0, 0.0, 1.0)


def test_class_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(RuleError, match=r"sum\(values\) > 0"):
        Given(values=(0.0, 0.0))


def test_class_weights_of_a_squared_error_are_refused() -> None:
    with pytest.raises(RuleError, match="class_weights needs `loss: cross-entropy`"):
        TrainConfig(epochs=1, batch_size=4, class_weights=Balanced(), loss=SquaredError())
