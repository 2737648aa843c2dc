from typing import Any

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.augmentations.crop import Crop
from mixup_core.images.choices.models import Mlp, ResNet18
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.laws import Beta, Erm
from mixup_core.rules import RuleError

BASE = TrainConfig(epochs=4, batch_size=8)
MIXED = with_values(BASE, {"mix.law": {"beta": 0.5}, "mix.switch_epoch": 2})


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("epochs", 0, "epochs >= 1"),
        ("batch_size", 0, "batch_size >= 1"),
        ("eval_every", 3, "eval_every must divide epochs"),
        ("seed", -1, "0 <= seed <= 2\\^63-1"),
        ("seed", 2**63, "0 <= seed <= 2\\^63-1"),
        ("mix.switch_epoch", -1, "switch_epoch >= 0"),
        ("mix.switch_epoch", 5, r"mix\.switch_epoch <= epochs"),
        ("mix.law_after", "midpoint", "law_after needs switch_epoch or switch_fraction"),
        ("optimizer.lr", 0.0, "0 < lr <= 1000"),
        ("optimizer.lr", 1001.0, "0 < lr <= 1000"),
        ("optimizer.lr", 1e5, "0 < lr <= 1000"),
        ("optimizer.lr", float("nan"), "0 < lr <= 1000"),
        ("optimizer.momentum", 0.9, "momentum needs optimizer.name to be sgd"),
        ("optimizer.weight_decay", -1.0, "0 <= weight_decay < inf"),
        ("data.num_train", 0, "num_train >= 1"),
        ("data.val_size", -1, "val_size >= 0"),
        ("data.pool", 0, "pool >= 1"),
        ("data.image_size", 2, "image_size >= 4"),
        ("data.train_fraction", 0.0, "0 < train_fraction <= 1"),
        ("data.train_fraction", 1.1, "0 < train_fraction <= 1"),
        (
            "data.balanced",
            True,
            "balanced takes as many images of each class: it needs num_train or train_fraction",
        ),
        ("data.label_noise", 1.5, "0 <= label_noise <= 1"),
        ("data.corruptions", ("fog",), "corruptions needs the dataset cifar10 or cifar100"),
        ("data.severity", 6, "1 <= severity <= 5"),
        ("data.folder", "x", "folder needs `name: image-folder`"),
        ("data.name", "image-folder", "`name: image-folder` needs `folder`"),
        ("model.width", 0, "width >= 1"),
        ("model.hidden", (300,), "hidden needs model.name to be mlp"),
    ],
)
def test_a_value_out_of_its_range_is_refused_with_its_rule(
    path: str, value: Any, rule: str
) -> None:
    with pytest.raises(ValueError, match=f"{rule}.*, got"):
        with_values(BASE, {path: value})


def test_folds_need_vary_all() -> None:
    rule = r"data\.folds needs `vary: all` .*got \(data\.folds=3, vary='order', redraw='nothing'\)"
    with pytest.raises(RuleError, match=rule):
        with_values(BASE, {"data.folds": 3, "vary": "order"})


def test_setting_values_does_not_depend_on_their_order() -> None:
    forth = {"mix.switch_epoch": 8, "epochs": 8, "eval_every": 4}
    back = dict(reversed(forth.items()))
    assert with_values(BASE, forth) == with_values(BASE, back)


def test_setting_alpha_keeps_the_kind_of_law() -> None:
    assert with_values(MIXED, {"mix.law.alpha": 2.0}).mix.law == Beta(alpha=2.0)


def test_the_law_is_constant_without_a_schedule_or_a_switch() -> None:
    assert {BASE.law_at(epoch) for epoch in range(4)} == {Erm()}


def test_models_report_whether_they_have_batch_norm() -> None:
    assert ResNet18().has_batch_norm
    assert not Mlp().has_batch_norm


def test_as_loaded_leaves_out_subset_and_augmentation() -> None:
    """The decoded images of a machine serve every subset and every augmentation."""
    data = DataConfig(
        name="cifar10", val_size=5, image_size=16, corruptions=("fog",), severity=2, views="concat",
        num_train=10, balanced=True, label_noise=0.2, augment=Crop(), pool=2, oracle=True,
    )  # fmt: skip
    assert data.as_loaded() == DataConfig(
        name="cifar10", val_size=5, image_size=16, corruptions=("fog",), severity=2, pool=2
    )
    assert DataConfig(train_fraction=0.5).as_loaded() == DataConfig()
