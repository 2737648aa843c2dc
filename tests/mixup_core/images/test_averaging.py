"""Averaged weights: computed by hand, beside the last weights, and after a resume."""

import copy

import pytest
import torch

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.evaluation import evaluate, logits_of
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import EvaluationImages

CPU = torch.device("cpu")


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
        assert state.averaged is not None
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
