"""Every model, objective, operation, probe and optimizer trains on a second, strict device.

Its records must equal those of a CPU, and training steps must not wait for the device. Where this
device raises an error, a GPU would fail or be slow.
"""

import dataclasses
from typing import Any

import pytest
import torch

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.evaluation import predict
from mixup_core.images.objectives.objective import Guided, Minimised, Plain
from mixup_core.images.training import TrainingState, fit
from mixup_core.problem import Teacher
from tests.contracts import test_registries as registries
from tests.contracts.test_registries import SMALL
from tests.second_device import (
    DEVICE,
    DispatchedInPython,
    MixedDevicesError,
    SecondDevice,
)
from tests.second_device import second_device as accept

# What `load_state_dict` says of any tensor on `meta`; these do take the values.
pytestmark = pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")

CPU = torch.device("cpu")
MIXED = with_values(SMALL, {"mix.law": {"beta": 0.5}})


@pytest.fixture(autouse=True)
def _accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    accept(monkeypatch)


def _there(
    config: TrainConfig, data: Splits, teacher: Teacher | None = None
) -> tuple[SecondDevice, list[Any], bytes, bytes]:
    """Train on the second device with a stop; return it, records, final state and predictions."""
    device = SecondDevice()
    with device:
        records, state = registries.resumed(config, data, 1, DEVICE, teacher)
        predicted = predict(config, data, state.networks(), DEVICE, state.logits).to_bytes()
        return device, records, state.to_bytes(), predicted


def _trained(config: TrainConfig, data: Splits, teacher: Teacher | None = None) -> SecondDevice:
    """Train on the second device and compare with the CPU."""
    device, records, stored, predicted = _there(config, data, teacher)
    with DispatchedInPython():
        state = TrainingState.initial(config, data.info, CPU)
        expected = list(fit(config, data, state, teacher=teacher))
        expected_predictions = predict(config, data, state.networks(), CPU, state.logits)
    assert records == expected
    assert stored == state.to_bytes()
    assert predicted == expected_predictions.to_bytes()
    return device


def _steps_wait_for_nothing(
    config: TrainConfig, data: Splits, teacher: Teacher | None = None, but_in: str = "nowhere"
) -> SecondDevice:
    """Check that twice as many steps read no more values and wait for no more copies.

    Args:
        config: The run.
        data: Its images.
        teacher: The run that it learns from.
        but_in: Module that is allowed to compute on the CPU in each step.
    """
    few = _trained(config, data, teacher)
    many, *_ = _there(with_values(config, {"batch_size": 5}), data, teacher)
    for one, other in ((many.reads, few.reads), (many.uploads, few.uploads)):
        changed = {place for place in {*one, *other} if one[place] != other[place]}
        assert not [place for place in changed if f" in {but_in}." not in place]
    return few


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(values, marks=[] if "objective" in values else [pytest.mark.long])
        for values in registries.each_part()
    ],
    ids=str,
)
def test_every_part_matches_the_cpu_and_no_step_waits_for_the_device(
    values: dict[str, Any], digits: Splits, teacher: Teacher
) -> None:
    config = with_values(MIXED, values)
    guide = teacher if isinstance(config.objective, Guided) else None
    _steps_wait_for_nothing(config, digits, guide, but_in="puzzlemix")


class _Impatient(Plain):
    """An objective that reads the value of its loss in each step, which makes the host wait."""

    def on(self, *given: Any) -> Minimised:
        minimised = Plain.on(self, *given)
        assert minimised.loss.item() > 0
        return minimised


def test_an_objective_that_reads_its_loss_in_a_step_is_detected(digits: Splits) -> None:
    config = dataclasses.replace(MIXED, objective=_Impatient())
    with pytest.raises(AssertionError):
        _steps_wait_for_nothing(config, digits)


class _Forgetful(Plain):
    """An objective that creates a tensor on the CPU, whatever the device."""

    def on(self, batch: Any, *given: Any) -> Minimised:
        weight = torch.ones(len(batch))
        return Minimised(loss=(Plain.on(self, batch, *given).loss * weight).mean())


def test_an_objective_that_combines_tensors_of_two_devices_is_refused(digits: Splits) -> None:
    config = dataclasses.replace(MIXED, objective=_Forgetful())
    with pytest.raises(MixedDevicesError, match="mul"):
        _trained(config, digits)
