import re

from sweeps.reading.arm_names import ARM_NAME, arm_name, coded_values


def test_a_grid_point_is_named_by_the_shortest_unique_endings_of_its_paths() -> None:
    assert arm_name("uniform", {"mix.switch_epoch": 5}) == "uniform switch_epoch=5"
    two = {"model.name": "mlp", "optimizer.name": "sgd", "epochs": 3}
    assert arm_name("a", two) == "a model.name=mlp optimizer.name=sgd epochs=3"
    assert arm_name("", {"epochs": 3}) == "epochs=3"


def test_non_ascii_and_long_values_get_distinct_names() -> None:
    names = [arm_name("", {"data.folder": value}) for value in ("фото", "кони", "data/фото/x1")]
    assert len(set(names)) == 3
    assert names[2].startswith("folder=data-x1-") or names[2].startswith("folder=data-")
    long = [arm_name("", {"data.folder": f"/data/{'very/' * 30}deep/{end}"}) for end in "ab"]
    assert len(set(long)) == 2
    assert all(re.fullmatch(rf"folder={ARM_NAME}", name) for name in names + long)
    assert all(len(name) < 50 for name in long)


def test_values_that_names_contain_as_a_code_are_listed_with_their_codes() -> None:
    long = "x/" * 40
    point = {"data.folder": "фото", "data.name": "digits", "model.weights": long, "epochs": 3}
    codes = coded_values(point)
    assert set(codes.values()) == {"фото", long}
    assert all(f"={code}" in arm_name("erm", point) for code in codes)
