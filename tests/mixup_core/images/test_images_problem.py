"""The problem `images`: what its facets say of configurations, metrics and names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.building import with_values
from mixup_core.config.parts import members
from mixup_core.images import metrics
from mixup_core.images.choices.models import LinearModel, Mlp, Model, NarrowResNet, ResNet18
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.memory import most_bytes
from mixup_core.images.metrics import METRICS
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.scores import Scores
from mixup_core.images.problem import (
    IMAGES,
    OTHER_NAMES,
    guessing,
    population,
    sample_size,
    setting,
)
from mixup_core.images.training import fit
from mixup_core.keys import stage_keys
from mixup_core.problem import fields_apart, problem_named
from sweeps.reading.study_file import StudyError
from sweeps.reading.study_keys import StudyKeys
from sweeps.reading.tree_paths import TreePaths, config_paths
from tests.sweeps.reading.study_files import SMALL, read


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (DataConfig(name="digits"), 1437),
        (DataConfig(name="digits", val_size=37), 1400),
        (DataConfig(name="digits", num_train=7), 7),
        (DataConfig(name="digits", val_size=37, train_fraction=0.25), 350),
        (DataConfig(name="digits", train_fraction=1e-9), 1),
        (DataConfig(name="digits", oracle=True), 1797),
        (DataConfig(name="digits", oracle=True, train_fraction=0.5), 899),
    ],
)
def test_num_images_is_the_number_of_training_images_of_an_epoch(
    data: DataConfig, size: int
) -> None:
    assert IMAGES.cost.work(TrainConfig(data=data, epochs=1, batch_size=7)) == size


def test_the_setting_names_the_image_size_when_images_are_resized() -> None:
    digits = TrainConfig(data=DataConfig(name="digits"), epochs=4, batch_size=8)
    assert setting(digits, "test/error") == "digits, 360 test images"
    resized = with_values(digits, {"data.image_size": 16})
    assert setting(resized, "test/error") == "digits at 16 pixels, 360 test images"
    assert population(digits, "test/error") != population(resized, "test/error")


NOISE = {"data.label_noise": 0.4}
CORRUPTED = {"data.name": "cifar10", "data.corruptions": ["fog"]}


@pytest.mark.parametrize(
    ("base", "change", "apart", "alike"),
    [
        ({"data.noise_in_val": True}, NOISE, ["val/error", "val/accuracy"], ["test/error"]),
        (NOISE, {"data.noise_in_val": True}, ["val/nll_averaged"], ["test/error", "train/loss"]),
        ({"data.noise_in_test": True}, NOISE, ["test/error"], []),
        ({}, NOISE, [], ["val/error", "test/error"]),
        (CORRUPTED, {"data.severity": 1}, ["test_fog/error", "test_corrupted/nll"], ["test/error"]),
        (
            CORRUPTED,
            {"data.corruptions": ["fog", "frost"]},
            ["test_corrupted/error"],
            ["test_fog/error", "test/error"],
        ),
        (
            {"data": {"name": "image-folder", "folder": "photos", "image_size": 16}},
            {"data.test_fraction": 0.1},
            ["test/error", "val/error"],
            [],
        ),
    ],
)
def test_runs_are_compared_by_metrics_of_the_same_images_and_labels(
    base: dict[str, Any], change: dict[str, Any], apart: list[str], alike: list[str]
) -> None:
    digits = TrainConfig(data=DataConfig(name="digits"), epochs=4, batch_size=8)
    first = with_values(digits, base)
    second = with_values(first, change)
    for metric in (*apart, *alike):
        is_equal = population(first, metric) == population(second, metric)
        assert is_equal == (metric in alike), metric
        assert fields_apart(first, second, metric) == ([] if is_equal else list(change)), metric


@pytest.mark.parametrize(
    ("metric", "severity", "images", "size"),
    [
        ("test_fog/error", 3, "10 000 test images under fog at severity 3", 10_000),
        ("test_fog/error", None, "10 000 test images under fog at all 5 severities", None),
        (
            "test_corrupted/error",
            1,
            "10 000 test images at severity 1, mean of 2 corruptions",
            None,
        ),
        ("test_far/error", 1, "10 000 test images", None),  # of a plugin
    ],
)
def test_corrupted_images_are_counted_once_for_each_corruption_and_severity(
    metric: str, severity: int | None, images: str, size: int | None
) -> None:
    data = DataConfig(name="cifar10", corruptions=("fog", "glass_blur"), severity=severity)
    config = TrainConfig(data=data, epochs=1, batch_size=7)
    assert setting(config, metric) == f"CIFAR-10, {images}"
    assert sample_size(config, metric) == size


def test_only_shares_of_all_images_of_a_run_count_them() -> None:
    data = DataConfig(name="digits", label_noise=0.01, num_train=1000)
    config = TrainConfig(data=data, epochs=1, batch_size=7)
    for metric, size, error in (
        ("train/error", 1000, 0.9),
        ("train/true_error", 1000, None),
        ("train/clean_error", None, None),
        ("train/wrong_error", None, None),
        ("test/error", 360, 0.9),
        ("train/far_error", None, None),  # this metric and the next are those of a plugin
        ("far/error", None, None),
    ):
        assert sample_size(config, metric) == size, metric
        assert guessing(config, metric) == pytest.approx(error), metric


def test_every_alternative_name_maps_to_an_existing_field() -> None:
    paths = config_paths(problem_named("images"))
    assert set(OTHER_NAMES.values()) <= {*paths.leaves, *TreePaths(StudyKeys).leaves}


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("label_smoothing", "loss.smoothing"),
        ("data.path", "data.folder"),
        ("early_stopping", "readout"),
    ],
)
def test_an_alternative_name_is_refused_with_the_key_that_is_meant(
    path: str, meant: str, tmp_path: Path
) -> None:
    group, _, key = path.rpartition(".")
    entry = f"{group}: {{{key}: 1}}" if group else f"{key}: 1"
    in_base = SMALL.replace("base: {", f"base: {{{entry}, ")
    for text in (in_base, SMALL + f"grid: {{{path}: [1, 2]}}\n"):
        with pytest.raises(StudyError, match=f"did you mean {meant}[?]"):
            read(tmp_path, text)


DECLARING = [*members(Objective), *members(Probe)]


def test_declared_metrics_are_registered_distinct_and_leave_the_training_loss_unchanged() -> None:
    for kind in DECLARING:
        assert METRICS.items() >= kind.metrics.items(), kind
    headings = [metric.heading for metric in METRICS.values()]
    assert len(set(headings)) == len(headings)
    declared = [name for kind in DECLARING for name in kind.metrics]
    assert len(set(declared)) == len(declared)
    assert list(METRICS)[-len(declared) :] == declared, "the order of columns"
    assert "train/loss" not in declared


def test_settings_that_change_no_batch_do_not_count() -> None:
    data = DataConfig(name="digits", num_train=40)
    erm = TrainConfig(data=data, model=Mlp(hidden=(4,)), epochs=1, batch_size=20)
    mixed = with_values(erm, {"mix.law": "midpoint", "mix.operation": "cutmix"})
    second = {"mix.second": "linear", "mix.second_law": {"beta": 1.0}}
    models = (
        (Mlp(), Mlp(hidden=(300, 100))),
        (LinearModel(), Mlp(hidden=())),
        (NarrowResNet(), NarrowResNet(width=12)),
    )
    for alike, idle in (
        (erm, with_values(mixed, {"mix.probability": 0.0, "mix.label_law": "midpoint"})),
        (mixed, with_values(mixed, {**second, "mix.second_probability": 0.0})),
        (mixed, with_values(mixed, {"mix.second_probability": 0.25})),
        *((replace(erm, model=one), replace(erm, model=other)) for one, other in models),
        (erm, with_values(erm, {"lr_schedule": {"cosine": {"end": 1.0}}})),
        *(
            (with_values(erm, law), with_values(erm, {**law, "mix.lam_scope": "sample"}))
            for law in ({"mix.law": "midpoint"}, {"mix.law": "midpoint", "mix.switch_epoch": 1})
        ),
    ):
        keys = [stage_keys(IMAGES.measuring.observed(c, "test/nll")) for c in (alike, idle)]
        nll = [[*fit(c, load(data))][-1].metrics["test/nll"] for c in (alike, idle)]
        assert keys[0] == keys[1], idle
        assert nll[0] == nll[1], idle
    drawn = with_values(mixed, {"mix.lam_scope": "sample"})  # a box for each image
    keys = [stage_keys(IMAGES.measuring.observed(c, "test/nll")) for c in (mixed, drawn)]
    assert keys[0] != keys[1]


def test_settings_of_other_images_and_of_absent_noise_do_not_count() -> None:
    base = TrainConfig(data=DataConfig(name="digits", val_size=9), epochs=1, batch_size=20)
    cifar = with_values(base, {"data.name": "cifar10", "data.corruptions": ["fog"]})
    noisy = with_values(base, {"data.label_noise": 0.5})

    def are_equal(one: TrainConfig, other: Mapping[str, Any], metric: str) -> bool:
        both = [IMAGES.measuring.observed(c, metric) for c in (one, with_values(one, other))]
        return stage_keys(both[0]) == stage_keys(both[1])

    for config, values, equal, unequal in (
        (base, {"data.noise_to": "one", "data.noise_in_val": True}, "val/error", None),
        (noisy, {"data.noise_in_val": True}, "test/error", "val/error"),
        (noisy, {"data.noise_in_test": True}, "val/error", "test/error"),
        (noisy, {"data.noise_to": "one"}, None, "train/loss"),
        (base, {"data.test": False}, "val/error", None),
        (with_values(base, {"data.oracle": True}), {"data.oracle": False}, None, "val/error"),
        (cifar, {"data.severity": 1}, "test/error", "test_fog/error"),
        (cifar, {"data.corruptions": ["fog", "frost"]}, "test_fog/error", "test_corrupted/error"),
    ):
        assert equal is None or are_equal(config, values, equal), values
        assert unequal is None or not are_equal(config, values, unequal), values
    population = IMAGES.comparing.population
    clean = with_values(base, {"data.noise_in_val": True, "data.noise_in_test": True})
    assert population(clean, "val/error") == population(base, "val/error")


def test_labels_are_drawn_once_for_all_seeds_that_hold_out_the_same_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = []

    def labels(config: TrainConfig, split: str) -> None:
        drawn.append((split, config.data.fold))

    monkeypatch.setattr(metrics, "held_out_labels", labels)
    few = "the {} val images lack some of the 10 classes; set a larger data.val_size"
    for data, lacks in (
        (DataConfig(name="digits", val_size=20), None),
        (DataConfig(name="digits", folds=3), None),
        (DataConfig(name="digits", val_size=9), few.format(9)),
        (DataConfig(name="digits", folds=500), "at seed 500, " + few.format(3)),
    ):
        config = TrainConfig(data=data, epochs=1, batch_size=20, probes=(Scores(),))
        assert IMAGES.measuring.lacks_at(config, "val/auroc", range(1000)) == lacks
    assert drawn == [("val", fold) for fold in (None, 0, 1, 2, None, 0)]


def test_a_metric_with_too_few_records_is_reported_as_lacking(config: TrainConfig) -> None:
    own = with_values(config, {"eval_every": 2, "probes": [{"weight-norm": 4}, {"el2n": 1}]})
    assert IMAGES.measuring.lacks(own, "test/error", 2) is None
    seldom = "{} records of the metric are needed, but the run makes {}"
    assert IMAGES.measuring.lacks(own, "test/error", 3) == seldom.format(3, 2)
    assert IMAGES.measuring.lacks(own, "train/weight_norm", 2) == seldom.format(2, 1)
    assert IMAGES.measuring.lacks(own, "train/el2n", 4) is None
    assert IMAGES.measuring.lacks(own, "train/loss", 4) is None


@pytest.mark.parametrize(
    ("usual", "wide"),
    [(Mlp(hidden=(8,)), Mlp(hidden=(16000, 16000))), (ResNet18(), ResNet18(width=512))],
)
def test_most_bytes_grows_with_the_width_of_the_network(usual: Model, wide: Model) -> None:
    config = TrainConfig(data=DataConfig(name="digits"), epochs=1, batch_size=64)
    growth = most_bytes(replace(config, model=wide)) - most_bytes(replace(config, model=usual))
    assert growth > 4 * 4 * 16000**2  # weights, gradients and two moments of Adam
