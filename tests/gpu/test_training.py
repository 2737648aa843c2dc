"""Runs on a real GPU: near the CPU's records, equal bits after a resume, no waits in steps."""

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.evaluation import predict
from mixup_core.images.objectives.objective import Guided
from mixup_core.images.training import TrainingState, fit
from mixup_core.numeric_settings import fix_precision
from mixup_core.problem import Teacher
from mixup_core.records import EpochRecord
from tests.contracts import test_registries as registries
from tests.contracts.test_registries import SMALL
from tests.gpu.device import GPU, needs_gpu

fix_precision(os.environ)
pytestmark = needs_gpu

CPU = torch.device("cpu")
MIXED = with_values(SMALL, {"mix.law": {"beta": 0.5}, "deterministic": True})
"""Models in which the rounding of one step changes the next losses by percents."""
COMPUTES_ON_THE_CPU = {"puzzlemix"}
"""Operations that solve an assignment problem on the CPU in each step."""


@pytest.fixture(scope="module")
def digits() -> Splits:
    return registries.made_up(DATASETS["digits"].info, 20)


@pytest.fixture(scope="module")
def teacher(digits: Splits) -> Teacher:
    return Teacher(config=SMALL, state=TrainingState.initial(SMALL, digits.info, CPU).to_bytes())


def _tensors(part: Any) -> Iterator[torch.Tensor]:
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, dict | list | tuple):
        for each in part.values() if isinstance(part, dict) else part:
            yield from _tensors(each)


def _equal_bits(one: TrainingState, other: TrainingState) -> bool:
    pairs = zip(
        *(
            _tensors([part.state_dict() for part in state._parts().values()])
            for state in (one, other)
        ),
        strict=True,
    )
    return all(torch.equal(a, b) for a, b in pairs)


def _near(records: list[EpochRecord], expected: list[EpochRecord]) -> None:
    """Require equal metrics, up to the rounding of two devices."""
    for one, other in zip(records, expected, strict=True):
        assert one.metrics.keys() == other.metrics.keys()
        for name, value in other.metrics.items():
            assert one.metrics[name] == pytest.approx(value, rel=5e-3, abs=1e-4, nan_ok=True), name


def _waits(config: TrainConfig, data: Splits, teacher: Teacher | None) -> int:
    """Train a run; return how often the host waited for the GPU."""
    state = TrainingState.initial(config, data.info, GPU)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            list(fit(config, data, state, device=GPU, teacher=teacher))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(each.message) for each in caught)


def _resumes(
    config: TrainConfig, data: Splits, teacher: Teacher | None = None
) -> tuple[list[EpochRecord], TrainingState]:
    """Train a run on the GPU; runs that stop after any epoch and resume must end with its bits."""
    straight = TrainingState.initial(config, data.info, GPU)
    records = list(fit(config, data, straight, device=GPU, teacher=teacher))
    for epoch in range(1, config.epochs):
        again, state = registries.resumed(config, data, epoch, GPU, teacher)
        assert again == records
        assert _equal_bits(state, straight)
    return records, straight


def _check(
    config: TrainConfig, data: Splits, teacher: Teacher | None = None, *, may_wait: bool = False
) -> None:
    """Train on the GPU with and without a stop, and on the CPU, and compare all three.

    Twice as many steps must wait for the GPU no more often.
    """
    records, straight = _resumes(config, data, teacher)
    state = TrainingState.initial(config, data.info, CPU)
    expected = list(fit(config, data, state, teacher=teacher))
    _near(records, expected)
    predict(config, data, straight.networks(), GPU, straight.logits).to_bytes()
    if not may_wait:
        _waits(config, data, teacher)  # the first time, kernels are loaded
        few = _waits(config, data, teacher)
        assert _waits(with_values(config, {"batch_size": 5}), data, teacher) == few


@pytest.mark.parametrize("values", list(registries.each_part()), ids=str)
def test_every_part_trains_on_a_gpu_like_on_a_cpu(
    values: dict[str, Any], digits: Splits, teacher: Teacher
) -> None:
    config = with_values(MIXED, values)
    may_wait = str(values.get("mix.operation")) in COMPUTES_ON_THE_CPU
    guide = teacher if isinstance(config.objective, Guided) else None
    _check(config, digits, guide, may_wait=may_wait)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_a_resumed_run_has_equal_bits_in_every_precision(precision: str, digits: Splits) -> None:
    values = {"precision": precision, "model": {"name": "narrow-resnet"}, "epochs": 3}
    _resumes(with_values(MIXED, values), digits)
