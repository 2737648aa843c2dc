from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mixup_core.config.building import built, with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.data.fetching import is_present
from mixup_core.images.feasibility import (
    held_out_labels,
    images_of_classes,
    infeasible,
    infeasible_at,
    lacking_classes,
    tags,
    taught,
    teacher_arm,
    unfit,
)
from mixup_core.images.problem import IMAGES, hidden
from mixup_core.images.views import TrainingImages
from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import Teacher
from mixup_core.rules import RuleError
from tests.mixup_core.images.taught_runs import NAMED, trained
from tests.mixup_core.small_files import fill, prepared


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"data.num_train": 1438}, "num_train must be at most the number of training images"),
        ({"data.train_fraction": 0.001}, "batch_size <= training images"),
        ({"data.val_size": 1437}, "val_size < training images"),
        ({"data.folds": 2000}, "folds <= training images"),
        ({"data.num_train": 1360, "data.balanced": True}, "(images wanted of each class=136, "),
    ],
)
def test_a_configuration_that_does_not_fit_the_data_is_reported(
    values: dict[str, Any], rule: str
) -> None:
    base = TrainConfig(epochs=4, batch_size=8)
    digits = with_values(base, {"data.name": "digits"})
    assert list(infeasible(digits)) == []
    assert rule in str(next(infeasible(with_values(digits, values))))


def test_keys_of_a_guided_run_depend_on_the_stage_of_its_teacher_and_not_its_name(
    mixed: TrainConfig,
) -> None:
    guided = with_values(mixed, {"objective": {"filter": {"teacher": "mixup"}}})
    for key in (run_key, stage_keys):
        with pytest.raises(
            RuleError, match=r"objective\.teacher needs objective\.teacher_key"
        ) as caught:
            key(guided)  # type: ignore[operator]
        assert caught.value.fields == ("objective.teacher", "objective.teacher_key")
    known = taught(guided, "a" * 32)
    renamed = with_values(known, {"objective.teacher": "other"})
    retaught = taught(guided, "b" * 32)
    assert (teacher_arm(known), known.objective.teacher_key) == ("mixup", "a" * 32)  # type: ignore[union-attr]
    assert (run_key(renamed), stage_keys(renamed)) == (run_key(known), stage_keys(known))
    assert run_key(retaught) != run_key(known)
    assert stage_keys(retaught)[1:] != stage_keys(known)[1:]
    assert stage_keys(retaught)[0] == stage_keys(known)[0], "the warm-up knows no teacher"
    assert teacher_arm(mixed) is None


def test_a_missing_teacher_or_one_with_other_views_is_refused(
    mixed: TrainConfig, splits: Splits, teacher: Teacher
) -> None:
    guided = with_values(mixed, {"objective": NAMED, "data.views": "single"})
    with pytest.raises(RuleError, match=r"its teacher must have the same data\.views"):
        trained(guided, splits, teacher)
    with pytest.raises(ValueError, match="the objective `filter` needs a teacher"):
        trained(with_values(mixed, {"objective": NAMED}), splits)


def test_runs_that_learn_from_test_images_are_marked_and_never_selected(
    mixed: TrainConfig, splits: Splits
) -> None:
    oracle = with_values(mixed, {"data.oracle": True, "data.val_size": 1})
    guided = with_values(mixed, {"objective": NAMED, "data.val_size": 1})
    declared = with_values(guided, {"objective.oracle": True})
    assert [tags(config) for config in (mixed, guided, oracle, declared)] == [
        (), (), ("oracle",), ("oracle",),
    ]  # fmt: skip
    for config in (oracle, declared):
        with pytest.raises(RuleError, match="a search must not train on test images"):
            hidden(config)
    with pytest.raises(RuleError, match="an oracle needs test images"):
        with_values(oracle, {"data.test": False})

    _, state = trained(oracle, splits)
    _, plain = trained(with_values(oracle, {"data.oracle": False}), splits)
    assert state != plain
    leaking = Teacher(config=oracle, state=state)
    trained(declared, splits, leaking)
    with pytest.raises(RuleError, match=r"objective\.oracle must be true if the teacher saw"):
        trained(guided, splits, leaking)
    honest = Teacher(config=mixed, state=plain)
    with pytest.raises(RuleError, match=r"objective\.oracle must be true if the teacher saw"):
        trained(declared, splits, honest)


HIDDEN = {"mix.law": "midpoint", "mix.operation": {"manifold": {"layers": [1]}}}


def test_every_reason_against_a_teacher_is_returned(mixed: TrainConfig) -> None:
    guided = with_values(mixed, {"objective": NAMED})
    assert list(unfit(guided, mixed)) == []
    other = with_values(mixed, {"data.name": "mnist", "data.image_size": 16, "data.pool": 2,
                                "data.views": "single", "data.oracle": True,
                                "data.pixel_std": [0.1]})  # fmt: skip
    assert [error.fields[0] for error in unfit(guided, other)] == [
        "objective.oracle", "data.name", "data.image_size", "data.views", "data.pool",
        "data.pixel_std",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("own", "its", "rule"),
    [
        ({"data.val_size": 2}, {"data.val_size": 1}, "must hold out the validation images"),
        ({"data.val_size": 1}, {"data.val_size": 2}, None),
        (
            {"data.val_size": 1, "data.normalise": "measured"},
            {"data.val_size": 2, "data.normalise": "measured"},
            "the same data.val_size",
        ),
        ({"data.folds": 2}, {"data.folds": 3}, "must hold out the validation images"),
        ({"data.folds": 2}, {"data.folds": 2}, None),
        ({"vary": "order", "data.num_train": 3}, {"data.num_train": 3}, "draw the source `subset`"),
        ({"redraw": "label-noise", "data.label_noise": 0.5}, {"data.label_noise": 0.1}, "label-n"),
        ({"redraw": "pairing", "data.views": "concat"}, {"data.views": "concat"}, "`pairing`"),
        ({"redraw": "order", "data.num_train": 3}, {"data.num_train": 3}, None),
        ({"vary": "order", "data.num_train": 3}, {}, None),
        ({"as_teacher": True, "data.num_train": 3}, {"data.num_train": 3}, None),
        (HIDDEN, {"model.name": "linear"}, "must mix hidden layers of the model, which has 0"),
        (HIDDEN, {"model.name": "narrow-resnet"}, None),
    ],
)
def test_a_teacher_needs_images_and_hidden_layers_of_its_run(
    own: dict[str, Any], its: dict[str, Any], rule: str | None
) -> None:
    base = {"data.name": "digits", "epochs": 1, "batch_size": 2}
    guided = built(TrainConfig, base | own | {"objective": NAMED})
    found = list(unfit(guided, built(TrainConfig, base | its)))
    assert [rule in str(error) for error in found] == [True] * (rule is not None)


DIGITS = with_values(TrainConfig(epochs=1, batch_size=2), {"data.name": "digits"})
CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with classes of 5, 1, 4 and 4 training images, and one test image each."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    fill(tmp_path / "pets" / "train", ant=5, bee=1, cow=4, doe=4)
    fill(tmp_path / "pets" / "test", first=20, ant=1, bee=1, cow=1, doe=1)
    return tmp_path / "pets"


@pytest.mark.parametrize(
    "values",
    [
        {"data.num_train": 20},
        {"data.num_train": 20, "data.val_size": 700},
        {"data.num_train": 23, "data.balanced": True, "data.val_size": 1000},
        {"data.num_train": 15, "data.label_noise": 0.5},
        {"data.train_fraction": 0.01, "data.oracle": True},
    ],
)
def test_class_counts_match_the_labels_of_the_training_images(values: dict[str, Any]) -> None:
    config = with_values(DIGITS, values)
    splits = load(config.data)
    for seed in range(3):
        at_seed = with_values(config, {"seed": seed})
        counts = images_of_classes(at_seed)
        for row, rate in zip(counts, (0.0, config.data.label_noise), strict=True):
            data = with_values(config, {"data.label_noise": rate}).data
            trained = TrainingImages(splits.seen_by(data), splits.info, data, at_seed.seeds, CPU)
            assert np.array_equal(row, torch.bincount(trained.labels, minlength=10).numpy())


def test_a_class_whose_only_image_is_held_out_is_refused_for_two_views_and_else_gives_a_warning(
    folder: Path,
) -> None:
    sizes = [
        size for size in range(1, 9)
        if (counts := images_of_classes(prepared(folder, val_size=size))) is not None
        and counts[0][1] == 0
    ]  # fmt: skip
    single, concat = (prepared(folder, val_size=sizes[0], views=v) for v in ("single", "concat"))
    assert list(infeasible_at(single, range(2))) == []
    said = "WARNING, no training image is labelled bee at every seed"
    assert list(lacking_classes(single, range(2))) == [said]
    (error,) = infeasible_at(concat, range(2))
    assert error.values == {"seed": 0, "classes without images": "bee"}


def test_a_class_missing_from_a_subset_is_warned_of_with_its_seeds(folder: Path) -> None:
    config = prepared(folder, num_train=6)
    seeds = range(20)
    lacking = {
        seed: np.flatnonzero(counts[1] == 0).tolist()
        for seed in seeds
        if (counts := images_of_classes(with_values(config, {"seed": seed}))) is not None
    }
    without_bee = ", ".join(str(seed) for seed in seeds if lacking[seed] == [1])
    said = list(lacking_classes(config, seeds))
    assert f"WARNING, no training image is labelled bee at seeds {without_bee}" in said


def test_a_balanced_subset_is_refused_when_validation_takes_all_images_of_a_class(
    folder: Path,
) -> None:
    for size in range(1, 9):
        config = prepared(folder, val_size=size, num_train=4, balanced=True)
        counts = images_of_classes(prepared(folder, val_size=size))
        is_refused = any(infeasible_at(config, range(3)))
        assert is_refused == bool(counts[0].min() == 0)
        if is_refused:
            splits = load(config.data)
            with pytest.raises(ValueError, match="needs enough images of each class"):
                TrainingImages(splits.train, splits.info, config.data, 0, CPU)


def test_the_fold_of_every_seed_must_fit() -> None:
    values = {"model.name": "narrow-resnet", "data.folds": 5, "batch_size": 383}
    config = with_values(DIGITS, values)  # fold 2 leaves 3 * 383 + 1 images
    seeds = [0, 5, 10, 15, 20]
    assert list(infeasible_at(config, seeds)) == []
    assert "BatchNorm" in str(next(infeasible_at(config, [*seeds, 2])))


def test_each_seed_holds_out_another_fold_and_the_folds_cover_all_images() -> None:
    config = with_values(DIGITS, {"data.folds": 4, "data.test": False})
    whole = load(DIGITS.data).train.pixels
    seen = []
    for seed in range(5):
        data = IMAGES.randomness.at_seed(config, seed).data
        splits = load(data)
        assert len(splits.val) == data.num_held_out(len(whole))
        assert len(splits.train) + len(splits.val) == len(whole)
        seen.append(splits.val.pixels)
    assert torch.equal(seen[4], seen[0])
    images = {tuple(image.flatten().tolist()) for image in torch.cat(seen[:4])}
    assert images == {tuple(image.flatten().tolist()) for image in whole}
    assert sum(map(len, seen[:4])) == len(whole)


def test_held_out_labels_are_known_unless_images_would_be_decoded(cifar_c: Path) -> None:
    config = TrainConfig(data=DataConfig(name="digits", val_size=37), epochs=1, batch_size=20)
    for split, count in (("val", 37), ("test", 360)):
        labels = held_out_labels(config, split)
        assert len(labels) == count
    decoded = with_values(config, {"data.name": "cifar10", "data.val_size": 4})
    assert is_present("cifar10", cifar_c)
    assert held_out_labels(decoded, "val") is None
