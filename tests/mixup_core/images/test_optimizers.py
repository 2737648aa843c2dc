"""One step of each optimizer, by hand."""

from typing import Any

import pytest
import torch

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.training import TrainingState
from mixup_core.rules import RuleError

RATE, DECAY, MOMENTUM = 0.1, 0.5, 0.9
WEIGHTS, GRADIENT = torch.tensor([1.0, -2.0]), torch.tensor([0.3, 0.4])


def _after_two_steps(optimizer: dict[str, Any], config: TrainConfig, splits: Splits) -> Any:
    """Return two weights after two steps along a fixed gradient."""
    config = with_values(config, {"model.name": "linear"})
    config = with_values(config, {f"optimizer.{name}": value for name, value in optimizer.items()})
    state = TrainingState.initial(config, splits.info, torch.device("cpu"))
    first = next(state.network.parameters()).data.view(-1)
    first[:2] = WEIGHTS
    for _ in range(2):
        for parameter in state.network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        next(state.network.parameters()).grad.view(-1)[:2] = GRADIENT  # type: ignore[union-attr]
        state.step(RATE, config.optimizer.clip_norm)
    return first[:2]


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_adds_weight_decay_to_the_gradient_and_accumulates_momentum(
    config: TrainConfig, splits: Splits, nesterov: bool
) -> None:
    fields = {"name": "sgd", "weight_decay": DECAY, "momentum": MOMENTUM, "nesterov": nesterov}
    weights, velocity = WEIGHTS, torch.zeros(2)
    for _ in range(2):
        gradient = GRADIENT + DECAY * weights
        velocity = MOMENTUM * velocity + gradient
        weights = weights - RATE * (gradient + MOMENTUM * velocity if nesterov else velocity)
    torch.testing.assert_close(_after_two_steps(fields, config, splits), weights)


def test_adamw_applies_decoupled_weight_decay(config: TrainConfig, splits: Splits) -> None:
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


def test_gradients_above_clip_norm_are_scaled_down_and_others_unchanged(
    config: TrainConfig, splits: Splits
) -> None:
    for clip_norm, scale in ((0.1, 0.1 / 0.5), (0.6, 1.0)):
        weights = _after_two_steps({"name": "sgd", "clip_norm": clip_norm}, config, splits)
        torch.testing.assert_close(weights, WEIGHTS - 2 * RATE * scale * GRADIENT)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_decay_of_weights_only_matches_parameter_groups_of_pytorch(
    config: TrainConfig, splits: Splits, name: str
) -> None:
    fields = {"name": name, "weight_decay": DECAY, "decayed": "weights", "lr": RATE}
    config = with_values(config, {f"optimizer.{field}": value for field, value in fields.items()})
    ours = TrainingState.initial(config, splits.info, torch.device("cpu"))
    theirs = TrainingState.initial(config, splits.info, torch.device("cpu")).network
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[name]
    named = dict(theirs.named_parameters())
    norms = [m for m in theirs.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    plain = {id(parameter) for norm in norms for parameter in norm.parameters()}
    plain |= {id(parameter) for key, parameter in named.items() if key.endswith("bias")}
    groups = [
        {"params": [p for p in named.values() if id(p) not in plain], "weight_decay": DECAY},
        {"params": [p for p in named.values() if id(p) in plain], "weight_decay": 0.0},
    ]
    optimizer = kind(groups, lr=RATE, fused=True)
    assert norms, "the network has layers of normalisation"
    for _ in range(2):
        for network in (ours.network, theirs):
            for parameter in network.parameters():
                parameter.grad = torch.full_like(parameter, 0.3)
        ours.step(RATE, None)
        optimizer.step()
    for key, parameter in ours.network.named_parameters():
        torch.testing.assert_close(parameter, named[key])


def test_decay_of_weights_only_needs_a_positive_weight_decay(config: TrainConfig) -> None:
    with pytest.raises(RuleError, match="needs a weight_decay above 0"):
        with_values(config, {"optimizer.decayed": "weights"})
