"""Optimizers, learning-rate schedules and averages against those of PyTorch."""

import copy
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

from mixup_core.config.building import with_values
from mixup_core.images.choices.optimizers import (
    Constant,
    Cosine,
    LrSchedule,
    Step,
    WarmUp,
)
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.evaluation import evaluate, logits_of
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import EvaluationImages
from mixup_core.keys import run_key, stage_keys
from mixup_core.rules import RuleError

CPU = torch.device("cpu")
RATE, DECAY, MOMENTUM = 0.1, 0.5, 0.9


def test_gradients_above_clip_norm_are_scaled_down_and_others_unchanged(
    config: TrainConfig, splits: Splits
) -> None:
    gradient = torch.tensor([0.3, 0.4])
    for clip_norm, scale in ((0.1, 0.1 / 0.5), (0.6, 1.0)):
        values = {"model.name": "linear", "optimizer.name": "sgd", "optimizer.clip_norm": clip_norm}
        state = TrainingState.initial(with_values(config, values), splits.info, CPU)
        for parameter in state.network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        first = next(state.network.parameters())
        before = first.detach().clone().view(-1)[:2]
        first.grad.view(-1)[:2] = gradient
        state.step(RATE, clip_norm)
        torch.testing.assert_close(first.view(-1)[:2], before - RATE * scale * gradient)


@pytest.mark.parametrize("decayed", ["all", "weights"])
@pytest.mark.parametrize(
    ("published", "more"),
    [
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {}),
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": MOMENTUM}),
        (torch.optim.SGD, {"momentum": MOMENTUM, "nesterov": True}),
    ],
)
def test_each_optimizer_steps_as_that_of_pytorch(
    config: TrainConfig, splits: Splits, published: Any, more: dict[str, Any], decayed: str
) -> None:
    fields = {"name": published.__name__.lower(), "weight_decay": DECAY, "decayed": decayed, **more}
    config = with_values(config, {f"optimizer.{name}": value for name, value in fields.items()})
    ours = TrainingState.initial(config, splits.info, CPU)
    theirs = TrainingState.initial(config, splits.info, CPU).network
    named = dict(theirs.named_parameters())
    norms = [m for m in theirs.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    plain = {id(parameter) for norm in norms for parameter in norm.parameters()}
    plain |= {id(parameter) for key, parameter in named.items() if key.endswith("bias")}
    plain = plain if decayed == "weights" else set()
    groups = [
        {"params": [p for p in named.values() if id(p) not in plain], "weight_decay": DECAY},
        {"params": [p for p in named.values() if id(p) in plain], "weight_decay": 0.0},
    ]
    optimizer = published(groups, lr=RATE, fused=True, **more)
    assert norms, "the network has layers of normalisation"
    for _ in range(2):
        for network in (ours.network, theirs):
            for parameter in network.parameters():
                parameter.grad = torch.full_like(parameter, 0.3)
        ours.step(RATE, None)
        optimizer.step()
    for key, parameter in ours.network.named_parameters():
        torch.testing.assert_close(parameter, named[key])


STEPS, EPOCHS = 5, 6


def _factors(schedule: LrSchedule) -> list[float]:
    return [schedule.factor(step, STEPS, EPOCHS) for step in range(STEPS * EPOCHS)]


def _published(make: Any, *, per_epoch: bool = False) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer)
    factors = []
    for step in range(STEPS * EPOCHS):
        factors.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if not per_epoch or (step + 1) % STEPS == 0:
            scheduler.step()
    return factors


def test_the_schedules_match_pytorch() -> None:
    expected = _published(lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS * EPOCHS))
    assert _factors(Cosine()) == pytest.approx(expected)
    expected = _published(lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS * EPOCHS, eta_min=0.2))
    assert _factors(Cosine(end=0.2)) == pytest.approx(expected)
    expected = _published(lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.5), per_epoch=True)
    assert _factors(Step(at=(2, 5), gamma=0.5)) == pytest.approx(expected)
    for level in (Step(at=()), Step(at=(1,), gamma=1.0), Cosine(end=1.0), Constant()):
        assert _factors(level) == [1.0] * 30


def test_a_warm_up_ends_at_the_full_rate_and_is_followed_by_the_schedule() -> None:
    rising = [(step + 1) / 10 for step in range(10)]
    assert _factors(WarmUp(warm_up=2)) == pytest.approx(rising + [1.0] * 20)
    expected = _published(lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS * 4))[:20]
    assert _factors(Cosine(warm_up=2)) == pytest.approx(rising + expected)
    stepped = Step(warm_up=2, at=(3,))
    assert _factors(stepped) == pytest.approx(rising + [1.0] * 5 + [0.1] * 15)
    assert [stepped.in_epoch(epoch, EPOCHS) for epoch in range(2, EPOCHS)] == [None] + [0.1] * 3
    assert _factors(Step(warm_up=2, at=(2,))) == pytest.approx(rising + [0.1] * 20)


def test_the_optimizer_uses_the_scheduled_learning_rate(
    config: TrainConfig, splits: Splits
) -> None:
    config = with_values(config, {"optimizer.name": "sgd", "optimizer.lr": 0.5, "batch_size": 48})
    cosine = with_values(config, {"lr_schedule": {"cosine": {"warm_up": 1}}})
    state = TrainingState.initial(cosine, splits.info, CPU)
    for epoch, _ in enumerate(fit(cosine, splits, state)):
        factor = cosine.lr_schedule.factor(2 * epoch + 1, 2, 4)
        assert state.optimizer.param_groups[0]["lr"] == 0.5 * factor


def test_schedules_share_the_stage_keys_of_equal_first_epochs(config: TrainConfig) -> None:
    def keys(schedule: Any, **values: Any) -> tuple[str, ...]:
        return stage_keys(with_values(config, {"lr_schedule": schedule, **values}))

    constant = keys("constant")
    assert keys("constant", epochs=1) == constant[:1]
    assert keys({"step": {"at": [2]}})[:2] == constant[:2]
    assert keys({"step": {"at": [2]}})[2] != constant[2]
    assert keys({"step": {"at": [2, 3]}})[:3] == keys({"step": {"at": [2]}}, epochs=8)[:3]
    warm = keys({"warm-up": 1})
    assert warm[0] == keys({"cosine": {"warm_up": 1}})[0] != constant[0]
    assert set(keys("cosine")).isdisjoint(keys("cosine", epochs=8)), "its rates are others"
    assert run_key(with_values(config, {"lr_schedule": "constant"})) == run_key(config)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"lr_schedule": {"warm-up": 4}}, "lr_schedule.warm_up < epochs"),
        ({"lr_schedule": {"step": {"at": [3, 2]}}}, "the epochs in `at` must increase"),
        ({"lr_schedule": {"step": {"at": [0]}}}, "each of at >= 1"),
        ({"lr_schedule": {"step": {"at": [1], "warm_up": 2}}}, "the epochs in `at` must increase"),
        ({"optimizer.name": "sgd", "optimizer.nesterov": True}, "nesterov needs a momentum above"),
        ({"optimizer.decayed": "weights"}, "needs a weight_decay above 0"),
        ({"optimizer.lr": 0.0}, "0 < lr <= 1000"),
        ({"optimizer.lr": 1000.5}, "0 < lr <= 1000"),
    ],
)
def test_settings_out_of_range_are_refused(
    config: TrainConfig, values: dict[str, Any], rule: str
) -> None:
    with pytest.raises(RuleError, match=rule):
        with_values(config, values)


@pytest.fixture
def averaged(config: TrainConfig) -> TrainConfig:
    """Run with one step per epoch, so that the weights after every step are known."""
    return with_values(config, {"averaging": {"ema": 0.75}, "batch_size": 96})


def test_averaged_metrics_use_weights_and_statistics_averaged_after_each_step(
    averaged: TrainConfig, splits: Splits
) -> None:
    state = TrainingState.initial(averaged, splits.info, CPU)
    expected = copy.deepcopy(state.network)
    for record in fit(averaged, splits, state):
        decay = 0.75 if record.epoch else 0.0
        for ours, now in zip(
            expected.state_dict().values(), state.network.state_dict().values(), strict=True
        ):
            if ours.is_floating_point():
                ours.copy_(decay * ours + (1 - decay) * now)
        kept = state.averaged.module.state_dict()
        for name, value in expected.state_dict().items():
            if value.is_floating_point():
                torch.testing.assert_close(kept[name], value)
        assert splits.test is not None
        images = EvaluationImages(splits.test, splits.info, averaged.data, CPU)
        measured = evaluate(logits_of(state.averaged, images, "float32"), images.labels)
        assert {name: record.metrics[f"test/{name}_averaged"] for name in measured} == measured
        assert record.metrics["test/nll_averaged"] == record.metrics["test/nll"] or record.epoch


def test_averaging_only_adds_averaged_metrics(averaged: TrainConfig, splits: Splits) -> None:
    plain = with_values(averaged, {"averaging": None})
    for record, other in zip(fit(averaged, splits), fit(plain, splits), strict=True):
        assert record.metrics.items() > other.metrics.items()
        assert {f"{n}_averaged" for n in other.metrics if "test" in n} == (
            record.metrics.keys() - other.metrics.keys()
        )
        assert record.metrics.keys() <= IMAGES.metrics.keys()
