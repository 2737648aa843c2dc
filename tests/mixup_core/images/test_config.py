import dataclasses
from typing import Any

import pytest

from mixup_core.images.config import DataConfig, MixConfig, Mlp, ResNet18, TrainConfig
from mixup_core.keys import run_key, stage_key, stage_keys
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.tree import flatten, with_values

BASE = TrainConfig(epochs=4, batch_size=8)
MIXED = with_values(BASE, {"mix.law": {"beta": 0.5}, "mix.switch_epoch": 2})


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("epochs", 0, "epochs >= 1"),
        ("batch_size", 0, "batch_size >= 1"),
        ("eval_every", 3, "eval_every divides epochs"),
        ("seed", -1, "0 <= seed <= 2\\^63-1"),
        ("seed", 2**63, "0 <= seed <= 2\\^63-1"),
        ("mix.switch_epoch", -1, "mix.switch_epoch >= 0"),
        ("mix.switch_epoch", 5, r"mix\.switch_epoch <= epochs"),
        ("mix.law_after", "midpoint", "a law_after has a switch_epoch"),
        ("optimizer.lr", 0.0, "0 < lr < inf"),
        ("optimizer.lr", float("nan"), "0 < lr < inf"),
        ("optimizer.momentum", 0.9, "momentum belongs to sgd"),
        ("optimizer.weight_decay", -1.0, "0 <= weight_decay < inf"),
        ("data.num_train", 0, "num_train >= 1"),
        ("data.val_size", -1, "val_size >= 0"),
        ("data.pool", 0, "pool >= 1"),
        ("data.image_size", 2, "image_size >= 4"),
        ("data.folder", "x", "folder belongs to image-folder"),
        ("data.name", "image-folder", "an image-folder names its folder"),
        ("model.width", 0, "width >= 1"),
        ("model.hidden", (300,), "hidden belongs to mlp"),
    ],
)
def test_a_value_out_of_its_range_is_refused_with_its_rule(
    path: str, value: Any, rule: str
) -> None:
    with pytest.raises(ValueError, match=f"{rule}.* must hold, got"):
        with_values(BASE, {path: value})


@pytest.mark.parametrize("path", ["mix.law.alhpa", "lr", "optimizer.lr.x", "mix.nothing", ""])
def test_a_path_that_names_no_field_is_refused(path: str) -> None:
    with pytest.raises(KeyError, match="path names a field"):
        with_values(BASE, {path: 1})


def test_values_are_set_together_whatever_their_order() -> None:
    forth = {"mix.switch_epoch": 8, "epochs": 8, "eval_every": 4}
    back = dict(reversed(forth.items()))
    assert with_values(BASE, forth) == with_values(BASE, back)


def test_alpha_alone_changes_the_law_in_place() -> None:
    assert with_values(MIXED, {"mix.law.alpha": 2.0}).mix.law == Beta(alpha=2.0)


def test_flatten_and_with_values_are_inverse() -> None:
    flat = flatten(MIXED)
    alpha = flat.pop("mix.law.alpha")
    flat["mix.law"] = {flat["mix.law"]: alpha}
    assert with_values(BASE, flat) == MIXED


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"epochs": 8},
        {"batch_size": 9},
        {"eval_every": 2},
        {"precision": "bfloat16"},
        {"data.num_train": 100},
        {"data.views": "concat"},
        {"data.test": False},
        {"model.name": "mlp"},
        {"optimizer.lr": 0.1},
        {"mix.law": "midpoint"},
        {"mix.lam_scope": "sample"},
    ],
)
def test_whatever_changes_numbers_changes_the_run_key(change: dict[str, Any]) -> None:
    assert run_key(with_values(BASE, change)) != run_key(BASE)


def test_where_images_lie_does_not_change_the_run_key() -> None:
    def of(folder: str, digest: str) -> TrainConfig:
        data = DataConfig(name="image-folder", folder=folder, image_size=32, digest=digest)
        return dataclasses.replace(BASE, data=data)

    assert run_key(of("a", "0")) == run_key(of("b", "0"))
    assert run_key(of("a", "0")) != run_key(of("a", "1"))


def test_a_whole_number_given_for_a_float_makes_no_new_key() -> None:
    as_int = dataclasses.replace(BASE, mix=MixConfig(law=Beta(alpha=1)))
    as_float = dataclasses.replace(BASE, mix=MixConfig(law=Beta(alpha=1.0)))
    assert run_key(as_int) == run_key(as_float)
    assert stage_keys(as_int) == stage_keys(as_float)


def test_keys_are_frozen() -> None:
    """A change here means every stored result is orphaned: raise NUMERICS_VERSION on purpose."""
    assert run_key(BASE) == "2c4fcf9cc462abf298118964406573f5"
    assert stage_key(MIXED, 4) == "9af252c5934ccbc0a8b7ef7038f1277a"


def test_equal_first_epochs_have_equal_stage_keys() -> None:
    switched_later = with_values(MIXED, {"mix.switch_epoch": 3})
    never = with_values(MIXED, {"mix.switch_epoch": None})
    assert stage_keys(MIXED)[:2] == stage_keys(switched_later)[:2] == stage_keys(never)[:2]
    assert stage_key(MIXED, 3) != stage_key(switched_later, 3)
    assert stage_key(switched_later, 4) != stage_key(never, 4)


def test_a_longer_run_continues_the_stages_of_a_shorter_one() -> None:
    assert stage_keys(with_values(BASE, {"epochs": 8}))[:4] == stage_keys(BASE)


def test_a_run_that_never_mixes_shares_with_erm_whatever_its_law() -> None:
    for law in (Beta(alpha=0.3), Midpoint()):
        mix = MixConfig(law=law, switch_epoch=0, lam_scope="sample", partner="permutation")
        config = dataclasses.replace(BASE, mix=mix)
        assert stage_keys(config) == stage_keys(BASE)
        assert run_key(config) != run_key(BASE)


def test_mixing_details_are_part_of_mixed_stages() -> None:
    mixed = dataclasses.replace(BASE, mix=MixConfig(law=Midpoint()))
    by_sample = with_values(mixed, {"mix.lam_scope": "sample"})
    assert stage_key(mixed, 1) != stage_key(by_sample, 1)


def test_stage_keys_of_all_epochs_differ() -> None:
    assert len(set(stage_keys(MIXED))) == MIXED.epochs
    assert stage_keys(MIXED) == tuple(stage_key(MIXED, epoch) for epoch in (1, 2, 3, 4))


def test_the_schedule_is_constant_without_a_switch_epoch() -> None:
    assert {BASE.mix.schedule.law_at(epoch) for epoch in range(9)} == {Erm()}


def test_models_know_whether_they_normalise_batches() -> None:
    assert ResNet18().has_batch_norm
    assert not Mlp().has_batch_norm


def test_an_image_folder_has_no_key_before_its_contents_are_digested() -> None:
    data = DataConfig(name="image-folder", folder="photos", image_size=32)
    with pytest.raises(ValueError, match="an image-folder has a digest before it has a key"):
        run_key(dataclasses.replace(BASE, data=data))
