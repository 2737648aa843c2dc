"""Every entry of every registry can be trained, stored, resumed and evaluated."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mixup_core.config.building import parsed, with_values
from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import members
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.choices.models import Model
from mixup_core.images.choices.optimizers import Averaging, LrSchedule, Optimizer
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images, Splits
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.losses import Loss
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import TrainingState, fit
from mixup_core.keys import run_key, stage_keys
from mixup_core.laws.schedules import Schedule
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import Partner
from mixup_core.problem import Teacher
from mixup_core.records import EpochRecord
from tests.covering import covering
from tests.mixup_core.small_files import noise_images

GUIDED = {"teacher": "erm", "teacher_key": "0" * 32, "warm_up": 0.0}


def _kinds(options: Any) -> tuple[Any, ...]:
    """Return the dataclasses among which a field chooses."""
    return tuple(kind for kind in members(options) if dataclasses.is_dataclass(kind))


def _named(options: Any) -> list[str]:
    """Return the tags or names of these dataclasses."""
    return [kind_name(kind) for kind in _kinds(options)]


def _spellings(options: Any, *given: Any) -> list[Any]:
    """Return the given values of a choice, and the bare names of all other kinds."""
    known = {type(parsed(options, spelling)) for spelling in given}
    return [*given, *(kind_name(kind) for kind in _kinds(options) if kind not in known)]


# What has no default is given here; all else that a choice holds is found.
SCHEDULES = _spellings(
    Schedule,
    {"phases": [{"law": "midpoint", "until": 1}, {"beta": 1.0}]},
    {"linear": {"start": 0.5, "end": 4.0}},
    {"cosine": {"start": 4.0, "end": 0.5}},
)
OBJECTIVES = _spellings(
    Objective,
    {"regmixup": {"eta": 0.5}},
    {"filter": GUIDED},
    {"filter": {**GUIDED, "keep": "high", "norm": "kept"}},
    {"filter": {**GUIDED, "keep": "all"}},
    {"failure-set": {"teacher": "erm", "teacher_key": "0" * 32}},
)
OPTIMIZERS = _spellings(Optimizer, {"name": "sgd", "momentum": 0.9, "nesterov": True})
RATES = _spellings(LrSchedule, {"warm-up": 1}, {"step": {"at": [1]}})
AVERAGES = _spellings(Averaging, {"ema": 0.9})
PROBES = _spellings(Probe, {"mean-gradient-norm": {"draws": 11}})  # by default it takes 200
SMALL = TrainConfig(
    data=DataConfig(name="digits"), model=parsed(Model, "mlp"), epochs=2, batch_size=10
)
CPU = torch.device("cpu")


def made_up(info: DatasetInfo, num: int) -> Splits:
    train = noise_images(info, num)
    few = Images(pixels=train.pixels[:8], labels=train.labels[:8])
    return Splits(info=info, train=train, val=few, test=few)


def small_model(model: str) -> dict[str, Any]:
    """Return a model of a name as a study file spells it, two channels wide if it has a width."""
    (kind,) = (kind for kind in _kinds(Model) if kind.name == model)
    if model == "timm":
        return {"name": model, "architecture": "test_resnet"}
    has_width = "width" in {field.name for field in dataclasses.fields(kind)}
    return {"name": model, **({"width": 2} if has_width else {})}


def each_part() -> Iterator[dict[str, Any]]:
    """Yield settings of every registered part, each at least once, for other devices than a CPU."""
    scopes, losses = itertools.cycle(["batch", "sample"]), itertools.cycle(_named(Loss))
    models, averages = itertools.cycle(["mlp", "narrow-resnet"]), itertools.cycle([None, *AVERAGES])
    for model in sorted(_named(Model), key=lambda name: name != "mlp"):
        yield {"model": small_model(model)}
    for objective in OBJECTIVES:
        kind = parsed(Objective, objective)
        law = {"mix.law": "erm"} if kind.must_not_mix else {}
        sees_test = {"data.oracle": kind.has_to_see_test}
        yield {"objective": objective, "loss": next(losses), **sees_test, **law}
    for operation in _spellings(Operation):
        views = {"data.views": "concat"}
        yield {"mix.operation": operation, "mix.lam_scope": next(scopes), **views}
    yield from ({"mix.partner": partner} for partner in _named(Partner))
    yield {"mix.second": "cutmix", "mix.probability": 0.7, "mix.label_law": {"beta": 2.0}}
    yield {"data.num_train": 15, "data.label_noise": 0.2, "data.pool": 2, "mix.law": "erm"}
    for optimizer in OPTIMIZERS:
        yield {"optimizer": optimizer, "averaging": next(averages)}
    for augment in (*sorted(Augmentation.catalogue), {"crop": "reflect"}):
        yield {"data.augment": augment, "data.views": "concat"}
    for probe in PROBES:
        views = {"data.views": parsed(Probe, probe).views or "single"}
        yield {"probes": [probe], **views, "model": small_model(next(models))}


def resumed(
    config: TrainConfig,
    data: Splits,
    epoch: int,
    device: torch.device = CPU,
    teacher: Teacher | None = None,
) -> tuple[list[EpochRecord], TrainingState]:
    """Train with a stop, a save and a resume after an epoch; return all records and the state."""
    stopped, state = (TrainingState.initial(config, data.info, device) for _ in range(2))
    run = fit(config, data, stopped, device=device, teacher=teacher)
    first = list(itertools.islice(run, epoch))
    state.load_bytes(stopped.to_bytes(), first)
    return first + list(fit(config, data, state, device=device, teacher=teacher)), state


def _keeps_its_promises(config: TrainConfig, data: Splits) -> list[EpochRecord]:
    """Train with and without a stop after each epoch; records and bits must be equal."""
    whole = TrainingState.initial(config, data.info, CPU)
    records = list(fit(config, data, whole))
    for epoch in range(1, config.epochs):
        again, state = resumed(config, data, epoch)
        assert again == records
        assert state.to_bytes() == whole.to_bytes()
    last = records[-1].metrics
    assert last.keys() <= IMAGES.metrics.keys()
    assert 0 <= last["val/error"] <= 1
    assert 0 <= last["test/calibration_error"] <= 1
    assert len(set(stage_keys(config))) == config.epochs
    assert len(run_key(config)) == 32
    return records


def _every_pair() -> list[Any]:
    """Return pairs of datasets and models in which each dataset and each model occurs."""

    def is_short(dataset: str, model: str) -> bool:
        return model == "mlp" or dataset == "digits"

    return [
        pytest.param(dataset, model, marks=[] if is_short(dataset, model) else pytest.mark.long)
        for dataset in DATASETS
        for model in _named(Model)
    ]


@pytest.mark.parametrize(("dataset", "model"), _every_pair())
def test_every_dataset_trains_every_model(dataset: str, model: str) -> None:
    """A small version: classes and channels of each dataset, at most 16 pixels, narrow networks."""
    info = DATASETS[dataset].info
    info = dataclasses.replace(info, image_size=min(info.image_size, 16))
    own = small_model(model)
    values = {"data.name": dataset, "model": own, "mix.law": {"beta": 0.5}, "batch_size": 8}
    config = with_values(SMALL, values)
    for record in _keeps_its_promises(config, made_up(info, 8)):
        assert 0 < record.metrics["train/loss"] < 20
    if info.num_classes % 2 == 0 and "width" in own:
        both = {"data.views": "concat", "epochs": 1, "batch_size": 2 * info.num_classes}
        _keeps_its_promises(with_values(config, both), made_up(info, 2 * info.num_classes))


OF_NO_PLUGIN = covering([None, *SCHEDULES], RATES, [None, *AVERAGES], _named(Loss), _named(Partner))
"""Values of the choices that no plugin extends, which `test_contracts.py` does not train."""


@pytest.mark.parametrize(
    ("schedule", "rate", "averaging", "loss", "partner"),
    [case for case in OF_NO_PLUGIN if not case.marks],
    ids=str,
)
def test_values_of_choices_that_no_plugin_extends_train_together(
    schedule: Any, rate: Any, averaging: Any, loss: str, partner: str, digits: Splits
) -> None:
    values = {
        "mix.schedule": schedule, "lr_schedule": rate, "averaging": averaging, "loss": loss,
        "mix.partner": partner, "mix.lam_scope": "sample", "batch_size": 7, "epochs": 3,
        "mix.second": "cutmix", "mix.second_law": "midpoint", "mix.probability": 0.7,
        "mix.label_law": {"beta": 2.0},
    } | ({"mix.law": {"beta": 0.7}} if schedule is None else {})  # fmt: skip
    records = _keeps_its_promises(with_values(SMALL, values), digits)
    assert ("test/error_averaged" in records[-1].metrics) == (averaging is not None)
