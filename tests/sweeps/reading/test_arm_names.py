import re

from mixup_core.laws import Beta, Midpoint
from sweeps.reading.arm_names import ARM_NAME, MAX_NAME, arm_name
from sweeps.reading.config_paths import Setting
from sweeps.reading.strict_yaml import Place


def name(arm: str, values: dict[str, object]) -> str:
    place = Place(source="s.yaml")
    return arm_name(
        arm, {path: Setting(value=v, place=place, where=path) for path, v in values.items()}
    )


def test_a_grid_point_is_named_by_as_few_last_parts_as_tell_its_paths_apart() -> None:
    assert name("uniform", {"mix.switch_epoch": 5}) == "uniform switch_epoch=5"
    two = {"model.name": "mlp", "optimizer.name": "sgd", "epochs": 3}
    assert name("a", two) == "a model.name=mlp optimizer.name=sgd epochs=3"
    assert name("", {"epochs": 3}) == "epochs=3"


def test_values_are_named_as_study_files_spell_them() -> None:
    values = {
        "mix.law": Beta(alpha=0.5), "mix.law_after": Midpoint(), "data.num_train": None,
        "data.test": True, "model.hidden": (30, 10), "data.folder": "my photos",
    }  # fmt: skip
    assert name("a", values) == (
        "a law=beta(0.5) law_after=midpoint num_train=null test=true hidden=30-10 folder=my-photos"
    )


def test_a_name_has_no_spaces_so_that_no_arm_is_named_like_a_point_of_a_search() -> None:
    assert re.fullmatch(ARM_NAME, "beta-0.5_x+1")
    assert not re.fullmatch(ARM_NAME, "point 0")
    assert re.fullmatch(ARM_NAME, "a" * MAX_NAME)
    assert not re.fullmatch(ARM_NAME, "a" * (MAX_NAME + 1))
