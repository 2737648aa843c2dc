"""One step of each optimizer, by hand."""

from typing import Any

import pytest
import torch

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.training import TrainingState
from mixup_core.rules import RuleError
from mixup_core.tree.building import with_values

RATE, DECAY, MOMENTUM = 0.1, 0.5, 0.9
WEIGHTS, GRADIENT = torch.tensor([1.0, -2.0]), torch.tensor([0.3, 0.4])


def _after_two_steps(optimizer: dict[str, Any], config: TrainConfig, splits: Splits) -> Any:
    """Return what two steps along a fixed gradient make of two weights."""
    config = with_values(config, {"model.name": "linear"})
    config = with_values(config, {f"optimizer.{name}": value for name, value in optimizer.items()})
    state = TrainingState.initial(config, splits.info, torch.device("cpu"))
    first = next(state.network.parameters()).data.view(-1)
    first[:2] = WEIGHTS
    for _ in range(2):
        for parameter in state.network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        next(state.network.parameters()).grad.view(-1)[:2] = GRADIENT  # type: ignore[union-attr]
        state.step(RATE)
    return first[:2]


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_adds_the_penalty_to_the_gradient_and_keeps_a_momentum(
    config: TrainConfig, splits: Splits, nesterov: bool
) -> None:
    fields = {"name": "sgd", "weight_decay": DECAY, "momentum": MOMENTUM, "nesterov": nesterov}
    weights, velocity = WEIGHTS, torch.zeros(2)
    for _ in range(2):
        gradient = GRADIENT + DECAY * weights
        velocity = MOMENTUM * velocity + gradient
        weights = weights - RATE * (gradient + MOMENTUM * velocity if nesterov else velocity)
    torch.testing.assert_close(_after_two_steps(fields, config, splits), weights)


def test_adamw_takes_the_decay_from_the_weights(config: TrainConfig, splits: Splits) -> None:
    weights, first, second = WEIGHTS, torch.zeros(2), torch.zeros(2)
    for step in (1, 2):
        weights = weights * (1 - RATE * DECAY)
        first = 0.9 * first + 0.1 * GRADIENT
        second = 0.999 * second + 0.001 * GRADIENT**2
        corrected = (second / (1 - 0.999**step)).sqrt() + 1e-8
        weights = weights - RATE * first / (1 - 0.9**step) / corrected
    fields = {"name": "adamw", "weight_decay": DECAY}
    torch.testing.assert_close(_after_two_steps(fields, config, splits), weights)


def test_nesterov_without_momentum_is_refused(config: TrainConfig) -> None:
    with pytest.raises(RuleError, match="nesterov needs a momentum above 0"):
        with_values(config, {"optimizer.name": "sgd", "optimizer.nesterov": True})
