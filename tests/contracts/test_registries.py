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
from mixup_core.images.losses import LossChoice
from mixup_core.images.objectives.objective import Guided, Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import TrainingState, fit
from mixup_core.keys import run_key, stage_keys
from mixup_core.laws import Law
from mixup_core.laws.schedules import Schedule
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import Partner
from mixup_core.problem import Teacher
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from tests.covering import covering

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
LAWS = _spellings(
    Law,
    {"beta": 0.5},
    {"beta-ab": {"a": 2.0, "b": 0.5}},
    {"discrete": {"values": [0.5, 1.0], "shares": [0.7, 0.3]}},
    {"truncated": {"alpha": 1.0, "low": 0.5}},
)
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


def _splits(info: DatasetInfo, num: int) -> Splits:
    rng = torch.Generator().manual_seed(0)
    shape = (num, info.channels, info.image_size, info.image_size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng)
    train = Images(pixels=pixels, labels=torch.arange(num) % info.num_classes)
    few = Images(pixels=pixels[:8], labels=train.labels[:8])
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
    scopes, losses = itertools.cycle(["batch", "sample"]), itertools.cycle(_named(LossChoice))
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


def _keeps_its_promises(
    config: TrainConfig, data: Splits, teacher: Teacher | None = None
) -> list[EpochRecord]:
    """Train with a stop, a save and a resume after each epoch; records and bits must be equal."""
    whole = TrainingState.initial(config, data.info, CPU)
    records = list(fit(config, data, whole, teacher=teacher))
    for epoch in range(1, config.epochs):
        stopped = TrainingState.initial(config, data.info, CPU)
        first = list(itertools.islice(fit(config, data, stopped, teacher=teacher), epoch))
        resumed = TrainingState.initial(config, data.info, CPU)
        resumed.load_bytes(stopped.to_bytes(), first)
        assert first + list(fit(config, data, resumed, teacher=teacher)) == records
        assert resumed.to_bytes() == whole.to_bytes()
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
    for record in _keeps_its_promises(config, _splits(info, 8)):
        assert 0 < record.metrics["train/loss"] < 20
    if info.num_classes % 2 == 0 and "width" in own:
        both = {"data.views": "concat", "epochs": 1, "batch_size": 2 * info.num_classes}
        _keeps_its_promises(with_values(config, both), _splits(info, 2 * info.num_classes))


@pytest.fixture(scope="module")
def digits() -> Splits:
    return _splits(DATASETS["digits"].info, 20)


@pytest.fixture(scope="module")
def teacher(digits: Splits) -> Teacher:
    state = TrainingState.initial(SMALL, digits.info, CPU)
    list(fit(SMALL, digits, state))
    return Teacher(config=SMALL, state=state.to_bytes())


@pytest.mark.parametrize(
    ("objective", "schedule", "loss"),
    covering(OBJECTIVES, [None, *SCHEDULES], _named(LossChoice)),
    ids=str,
)
def test_every_objective_trains_under_every_schedule(
    objective: Any, schedule: Any, loss: str, digits: Splits, teacher: Teacher
) -> None:
    kind = parsed(Objective, objective)
    laws = [law for law in LAWS if not (kind.has_to_mix if law == "erm" else kind.must_not_mix)]
    fitting = {"objective": objective, "loss": loss, "data.oracle": kind.has_to_see_test}
    if schedule is not None and kind.must_not_mix:
        with pytest.raises(RuleError, match=r"needs `mix\.law: erm`"):
            with_values(SMALL, {**fitting, "mix.schedule": schedule})
        return
    for values in [{"mix.law": law} for law in laws] if schedule is None else [{}]:
        config = with_values(SMALL, {**fitting, "mix.schedule": schedule, **values})
        guide = teacher if isinstance(kind, Guided) else None
        _keeps_its_promises(config, digits, guide)


UNDER_OPERATIONS = [
    {"model.name": "mlp", "objective": {"filter": GUIDED}, "probes": ["mixup-loss"]},
    {"model": {"name": "narrow-resnet", "width": 2}, "data.views": "concat",
     "objective": "regmixup", "probes": ["gradient-norm"]},
    {"model.name": "mlp", "mix.second": "cutmix", "mix.second_law": "midpoint",
     "mix.probability": 0.7, "mix.label_law": {"beta": 2.0}, "mix.partner": "similar"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "scope", "values"),
    covering(_spellings(Operation), ["batch", "sample"], UNDER_OPERATIONS),
    ids=str,
)
def test_every_operation_trains_under_objectives_and_changes_stage_keys_unless_linear(
    operation: Any, scope: str, values: Any, digits: Splits
) -> None:
    epochs = {"epochs": 3, "batch_size": 7}
    config = with_values(SMALL, {"mix.law": {"beta": 0.7}, "mix.lam_scope": scope, **epochs})
    config = with_values(config, {key: value for key, value in values.items() if "." not in key})
    config = with_values(config, {key: value for key, value in values.items() if "." in key})
    guide = None
    if isinstance(config.objective, Guided):
        plain = with_values(config, {"objective": "plain", "probes": []})
        state = TrainingState.initial(plain, digits.info, CPU)
        guide = Teacher(config=plain, state=state.to_bytes())
    linear = stage_keys(config)
    config = with_values(config, {"mix.operation": operation})
    records = _keeps_its_promises(config, digits, guide)
    assert (stage_keys(config) == linear) == (operation == "linear")
    has_floor = operation == "linear" and "mix.second" not in values
    has_floor = has_floor and not isinstance(config.objective, Guided)
    assert all(("train/excess_loss" in r.metrics) == has_floor for r in records)


@pytest.mark.parametrize(
    ("optimizer", "rate", "averaging"), covering(OPTIMIZERS, RATES, [None, *AVERAGES]), ids=str
)
def test_every_optimizer_trains_with_every_learning_rate_schedule_and_averaging(
    optimizer: Any, rate: Any, averaging: Any, digits: Splits
) -> None:
    values = {"optimizer": optimizer, "lr_schedule": rate, "averaging": averaging}
    records = _keeps_its_promises(with_values(SMALL, values), digits)
    assert ("test/error_averaged" in records[-1].metrics) == (averaging is not None)
