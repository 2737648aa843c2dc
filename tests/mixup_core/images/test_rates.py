"""Learning rates of every step, compared with PyTorch's schedulers, and their part in keys."""

from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

from mixup_core.config.building import with_values
from mixup_core.images.choices.optimizers import Constant, Cosine, LrSchedule, Step, WarmUp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.training import TrainingState, fit
from mixup_core.keys import run_key, stage_keys
from mixup_core.rules import RuleError

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


def test_the_cosine_schedule_matches_pytorch() -> None:
    expected = _published(lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS * EPOCHS))
    assert _factors(Cosine()) == pytest.approx(expected)
    expected = _published(lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS * EPOCHS, eta_min=0.2))
    assert _factors(Cosine(end=0.2)) == pytest.approx(expected)


def test_the_step_schedule_matches_pytorch() -> None:
    expected = _published(lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.5), per_epoch=True)
    assert _factors(Step(at=(2, 5), gamma=0.5)) == pytest.approx(expected)
    assert _factors(Step(at=())) == _factors(Constant()) == [1.0] * 30


def test_a_warm_up_ends_at_the_full_rate_and_is_followed_by_the_schedule() -> None:
    rising = [(step + 1) / 10 for step in range(10)]
    assert _factors(WarmUp(warm_up=2)) == pytest.approx(rising + [1.0] * 20)
    expected = _published(lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS * 4))[:20]
    assert _factors(Cosine(warm_up=2)) == pytest.approx(rising + expected)
    stepped = _factors(Step(warm_up=2, at=(3,)))
    assert stepped == pytest.approx(rising + [1.0] * 5 + [0.1] * 15)


def test_the_optimizer_uses_the_scheduled_learning_rate(
    config: TrainConfig, splits: Splits
) -> None:
    config = with_values(config, {"optimizer.name": "sgd", "optimizer.lr": 0.5, "batch_size": 96})
    cosine = with_values(config, {"lr_schedule": {"cosine": {"warm_up": 1}}})
    state = TrainingState.initial(cosine, splits.info, torch.device("cpu"))
    for epoch, _ in enumerate(fit(cosine, splits, state)):
        factor = cosine.lr_schedule.factor(epoch, 1, 4)
        assert state.optimizer.param_groups[0]["lr"] == 0.5 * factor


def test_schedules_share_the_stage_keys_of_equal_first_epochs(config: TrainConfig) -> None:
    def keys(schedule: Any, **values: Any) -> tuple[str, ...]:
        return stage_keys(with_values(config, {"lr_schedule": schedule, **values}))

    constant = keys("constant")
    assert keys({"step": {"at": [2]}})[:2] == constant[:2]
    assert keys({"step": {"at": [2]}})[2] != constant[2]
    assert keys({"step": {"at": [2, 3]}})[:3] == keys({"step": {"at": [2]}}, epochs=8)[:3]
    warm = keys({"warm-up": 1})
    assert warm[0] == keys({"cosine": {"warm_up": 1}})[0] != constant[0]
    assert set(keys("cosine")).isdisjoint(keys("cosine", epochs=8)), "its rates are others"
    assert run_key(with_values(config, {"lr_schedule": "constant"})) == run_key(config)


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        ({"cosine": {"end": 1.5}}, "0 <= end <= 1"),
        ({"cosine": {"end": -0.5}}, "0 <= end <= 1"),
        ({"cosine": {"warm_up": -1}}, "warm_up >= 0"),
        ({"warm-up": 4}, "lr_schedule.warm_up < epochs"),
        ({"step": {"at": [3, 2]}}, "the epochs in `at` must increase"),
        ({"step": {"at": [0]}}, "each of at >= 1"),
        ({"step": {"at": [1], "warm_up": 2}}, "the epochs in `at` must increase"),
        ({"step": {"at": [1], "gamma": 0.0}}, "0 < gamma <= 1"),
        ({"step": {"at": [1], "gamma": 1.5}}, "0 < gamma <= 1"),
    ],
)
def test_a_schedule_out_of_range_is_refused(config: TrainConfig, schedule: Any, rule: str) -> None:
    with pytest.raises(RuleError, match=rule):
        with_values(config, {"lr_schedule": schedule})


def test_the_limits_of_schedule_fields_are_accepted() -> None:
    assert _factors(Cosine(end=1.0)) == _factors(Step(at=(1,), gamma=1.0)) == [1.0] * 30
    rising = [(step + 1) / 10 for step in range(10)]
    assert _factors(Step(at=(2,), warm_up=2)) == pytest.approx(rising + [0.1] * 20)
    assert Cosine().end == 0.0
    assert Step(at=(1,)).gamma == 0.1
