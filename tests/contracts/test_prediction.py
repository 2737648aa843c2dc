"""Prediction: reading a study accepts exactly the runs that train and the metrics that they record.

Each case is one step of training on a few images. The cases are made from the catalogues, so that
a new operation, objective, probe, model, augmentation or theory problem is a new case.
"""

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from mixsweep import read_study
from mixup_core.config.building import parsed, with_values
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.choices.models import Model
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import TrainingState, fit
from mixup_core.mixing.operation import Operation
from mixup_core.plugins.suite import smallest
from mixup_core.problem import PROBLEMS, DivergedError, Teacher, problem_named
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from sweeps.reading.study_file import StudyError
from sweeps.study.readouts import ByValidation, Readout

CPU = torch.device("cpu")
KEY = "0" * 32
PLAIN = {
    "data.name": "digits", "data.num_train": 20, "epochs": 1, "batch_size": 10,
    "model.name": "linear", "mix.law": {"beta": 1.0}, "mix.lam_scope": "sample",
}  # fmt: skip
OF_VIEWS = {"multi-view-error", "spurious-error", "true-error"}
OF_IMAGES = {"original-error", "changed-images", "outside-images"}
WIDE = {"mlp", "linear"}


def _probes(views: str) -> list[Any]:
    left_out = OF_VIEWS if views == "single" else OF_IMAGES
    if views not in {"single", "concat"}:
        left_out = OF_VIEWS | OF_IMAGES
    few = {"mean-gradient-norm": {"mean-gradient-norm": {"draws": 3}}}
    return [few.get(tag, tag) for tag in Probe.catalogue if tag not in left_out]


def _taught(tag: str, **values: Any) -> Any:
    return {tag: {"teacher": "erm", "teacher_key": KEY, "warm_up": 0.0, **values}}


_FAILURES = {"failure-set": {"teacher": "erm", "teacher_key": KEY}}
OBJECTIVES = [
    *({"objective": {"filter": _taught("filter"), "failure-set": _FAILURES}.get(tag, tag)}
      for tag in Objective.catalogue),
    {"objective": _taught("filter", keep="all")},
    {"objective": _taught("filter", warm_up=1.0)},
    {"objective": {"regmixup": {"eta": 0.0}}},
    {"objective": {"mixup-e": {"eta": 0.0}}},
    {"objective": _FAILURES, "data.oracle": True, "mix.law": "erm"},
]  # fmt: skip
LAWS = [
    {"mix.law": law}
    for law in ("erm", "midpoint", {"truncated": {"alpha": 1.0, "low": 0.4, "high": 0.6}},
                {"discrete": {"values": [0.9, 1.0], "shares": [0.5, 0.5]}})
]  # fmt: skip
AXES: Mapping[str, list[dict[str, Any]]] = {
    "law": [
        *LAWS,
        {"mix.law": "erm", "mix.schedule": "easy"},
        {"mix.law": "erm", "mix.switch_epoch": 0, "mix.law_after": "midpoint"},
        {"mix.law": "midpoint", "mix.switch_epoch": 0},
    ],
    "operation": [{"mix.operation": each} for each in Operation.catalogue],
    "objective": OBJECTIVES,
    "partner": [{"mix.partner": "permutation"}, {"mix.partner": "similar"}],
    "second": [{"mix.second": "cutmix"}, {"mix.second": "linear", "mix.second_law": "midpoint"},
               {"mix.second": "puzzlemix"}],
    "label": [{"mix.label_law": "midpoint"}],
    "probability": [{"mix.probability": 0.0}],
    "loss": [{"loss": "squared-error"}, {"loss": {"cross-entropy": {"smoothing": 0.1}}}],
    "views": [{"data.views": each} for each in ("concat", "added", "orthogonal")],
    "split": [{"data.val_size": 5}, {"data.val_size": 40, "data.test": False},
              {"data.test": False}, {"data.folds": 9}],
    "averaging": [{"averaging": {"ema": 0.5}}],
    "noise": [{"data.label_noise": 1.0}, {"data.label_noise": 0.5}],
    "batch": [{"batch_size": 20}, {"batch_size": 19}],
    "size": [{"data.pool": 8}, {"data.pool": 4}, {"data.pool": 3}, {"data.image_size": 9},
             {"data.image_size": 5, "data.pool": 5}, {"data.image_size": 6, "data.pool": 2}],
    "augment": [{"data.augment": each} for each in Augmentation.catalogue],
}  # fmt: skip
MODELS = [{"model.name": name} | ({} if name in WIDE else {"model.width": 2})
          for name in Model.catalogue if name != "timm"]  # fmt: skip
NUM_RANDOM = 60


def _cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each value of each axis alone, and random combinations of three values."""
    yield "plain", {}
    yield "few held out", {"data.val_size": 12, "probes": ["scores"]}
    for axis, values in AXES.items():
        for index, value in enumerate(values):
            yield f"{axis}{index}", value
    for value, size in itertools.product(MODELS, [{}, *AXES["size"]]):
        yield value["model.name"], {**value, **size, "probes": []}
    rng = random.Random(0)
    for number in range(NUM_RANDOM):
        axes = rng.sample(sorted(AXES), 3)
        merged: dict[str, Any] = {}
        for axis in axes:
            merged |= rng.choice(AXES[axis])
        yield f"{number}-" + "-".join(axes), merged


@cache
def _loaded(data: DataConfig) -> Splits:
    splits = load(data)
    if splits.test is None:
        return splits
    pixels, labels = splits.test.pixels[:60], splits.test.labels[:60]
    return replace(splits, test=replace(splits.test, pixels=pixels, labels=labels))


def _teacher(config: TrainConfig) -> Teacher | None:
    if IMAGES.teaching is None or IMAGES.teaching.arm(config) is None:
        return None
    own = with_values(config, {"objective": "plain", "mix.law": "erm", "data.oracle": False})
    state = TrainingState.initial(own, _loaded(own.data.as_loaded()).info, CPU)
    return Teacher(config=own, state=state.to_bytes())


def _trained(config: TrainConfig) -> EpochRecord:
    """Train a run and return its last record; a small dataset takes some milliseconds."""
    splits = _loaded(config.data.as_loaded())
    return [*fit(config, splits, teacher=_teacher(config))][-1]


def _config(values: Mapping[str, Any]) -> TrainConfig | None:
    """Return the configuration; None if fields contradict each other, as the reader reports."""
    base = TrainConfig(epochs=1, batch_size=10)
    merged = {**PLAIN, **values}
    merged.setdefault("probes", _probes(merged.get("data.views", "single")))
    try:
        return IMAGES.randomness.at_seed(with_values(base, merged), 0)
    except RuleError:
        return None


def test_reading_accepts_exactly_the_image_runs_that_train_and_predicts_their_metrics() -> None:
    torch.set_num_threads(1)
    wrong, tried = [], 0
    for name, values in _cases():
        if (config := _config(values)) is None:
            continue
        tried += 1
        reasons = [*IMAGES.reading.unfit(config, [0])]
        try:
            record = _trained(config)
        except DivergedError:
            continue
        except Exception as error:  # an unpredicted failure can have any type
            if not reasons:
                wrong.append(f"{name} {values}: planned, but the run raises {error!r}")
            continue
        if reasons:
            wrong.append(f"{name} {values}: trains, but is refused: {reasons[0]}")
            continue
        for metric in IMAGES.metrics:
            lacks = IMAGES.measuring.missing(config, metric, 1, [0])
            if (lacks is None) != (metric in record.metrics):
                wrong.append(f"{name} {values}: {metric}: {lacks}")
    assert not wrong, f"{len(wrong)} of {tried} cases:\n" + "\n".join(wrong)
    assert tried > 100


READOUTS: list[Any] = [
    "last", {"mean_of_last": 2}, {"mean_of_last": 3}, "averaged", "best_validation",
    {"early_stopping": 1},
]  # fmt: skip
MEASURED: list[dict[str, Any]] = [
    {}, {"averaging": {"ema": 0.5}}, {"data.val_size": 5}, {"eval_every": 2},
    {"averaging": {"ema": 0.5}, "data.val_size": 5, "eval_every": 2},
]  # fmt: skip


def _accepts(values: Mapping[str, Any], metric: str, **places: Any) -> bool:
    """Return whether a study can have a claim about a metric with read-outs at given places."""
    that = {"less": ["uniform", "erm"], "metric": metric, **places.pop("that", {})}
    study = {
        "study": "readouts",
        "base": {**PLAIN, **values, "epochs": 4},
        "arms": {"erm": {"mix.law": "erm"}, "uniform": {}},
        "seeds": 2,
        "claims": [{"says": "Mixup wins", "source": "a test", "that": that}],
        **places,
    }
    try:
        read_study(study)
    except StudyError:
        return False
    return True


def test_reading_accepts_exactly_the_claims_whose_read_out_runs_give() -> None:
    torch.set_num_threads(1)
    wrong = []
    for values in MEASURED:
        config = _config({**values, "epochs": 4, "probes": []})
        records = list(fit(config, _loaded(config.data.as_loaded())))
        for metric, written in itertools.product(
            ["test/error", "val/error", "train/loss"], READOUTS
        ):
            readout: Any = parsed(Readout, written)
            is_read = readout.of(records, metric) is not None and not (
                isinstance(readout, ByValidation) and metric.startswith("val/")
            )
            # Arms are compared by the error, whatever the claims are about.
            is_compared = readout.of(records, "test/error") is not None
            for place, expected in {
                "that": is_read,
                "readout": is_read and is_compared,
                "sensitivity": is_read and is_compared,
            }.items():
                given = written if place == "readout" else {"readout": written}
                if place == "sensitivity":
                    given = {"readout": [written]}
                if _accepts(values, metric, **{place: given}) != expected:
                    wrong.append(f"{values} {place} {written} {metric}: expected {expected}")
    assert not wrong, "\n".join(wrong)


SMALL: Mapping[str, dict[str, Any]] = {
    "sufficiency": {"data.name": "digits", "data.num_train": 20},
    "linear-views": {"epochs": 1, "nodes": 4},
    "moons": {"epochs": 1, "steps_per_epoch": 1, "points": 4, "hidden": 4, "resolution": 10},
    "mixup-expansion": {"epochs": 1, "first_points": 4, "test_points": 10, "rank": 1},
}
"""Settings of short runs of the other problems, whose other fields have their smallest values."""
CHANGED: Mapping[str, list[dict[str, Any]]] = {
    "sufficiency": [{"data.test": False}, {"data.num_train": 1}],
    "support-vectors": [{"dimension": 1, "points": 4}, {"dimension": 1, "points": 4, "shift": 9}],
    "entropy-floor": [{"target": 0.5}],
    "linear-views": [
        {"quantity": {"excess": {"points": 2}}},
        {"quantity": {"excess": {"points": 2, "first": 2}}},
        {"quantity": {"gap": {"draws": 2}}, "law": "midpoint"},
        {"quantity": {"gap": {"draws": 2}}, "law": {"beta": 1.0}},
        {"quantity": {"gradients": {"draws": 2}}},
    ],
    "mixup-expansion": [{"law": "midpoint"}, {"law": {"beta": 0.001}}],
    "moons": [{"compared": "midpoint"}],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROBLEMS.keys() - {"images"}))
def test_reading_accepts_exactly_the_metrics_that_a_problem_records(name: str) -> None:
    problem = problem_named(name)
    wrong = []
    for values in [{}, *CHANGED.get(name, [])]:
        config = with_values(smallest(problem), {**SMALL.get(name, {}), **values})
        assert not [*problem.reading.feasibility(config)]
        last = [*problem.start(config, None, "cpu")][-1]
        wrong += [
            f"{values}: {metric}: {lacks}"
            for metric in problem.metrics
            for lacks in [problem.measuring.missing(config, metric, 1, [config.seed])]
            if (lacks is None) != (metric in last.metrics)
        ]
    assert not wrong
