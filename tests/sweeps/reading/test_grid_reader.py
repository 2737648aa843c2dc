import re
import time
from pathlib import Path

import pytest

from sweeps.reading.grid_reader import ARM_NAME, arm_name, coded_values
from tests.sweeps.reading.study_files import ARMS, SMALL, read, refusals


def test_a_list_of_grids_is_their_union(tmp_path: Path) -> None:
    text = SMALL + "grid:\n- {epochs: [1, 2]}\n- {epochs: [2], optimizer.lr: [0.1]}\n"
    assert list(read(tmp_path, text).arms) == ["epochs=1", "epochs=2", "epochs=2 lr=0.1"]


def test_zipped_lists_are_paired_and_crossed_with_grid_and_arms(tmp_path: Path) -> None:
    zipped = "zip: {epochs: [1, 2], optimizer.lr: [0.1, 0.2]}\n"
    assert list(read(tmp_path, SMALL + zipped).arms) == ["epochs=1 lr=0.1", "epochs=2 lr=0.2"]
    text = ARMS + zipped + "grid: {data.pool: [1, 2]}\n"
    study = read(tmp_path, text)
    assert list(study.arms)[:4] == [
        "erm pool=1 epochs=1 lr=0.1",
        "erm pool=1 epochs=2 lr=0.2",
        "erm pool=2 epochs=1 lr=0.1",
        "erm pool=2 epochs=2 lr=0.2",
    ]
    assert len(study.arms) == 8
    config = study.arms["uniform pool=2 epochs=2 lr=0.2"]
    assert (config.data.pool, config.epochs, config.optimizer.lr) == (2, 2, 0.2)  # type: ignore[attr-defined]


def test_an_excluded_combination_can_mix_arm_and_grid_settings(tmp_path: Path) -> None:
    text = ARMS + "grid: {mix.switch_epoch: [2, null]}\n"
    left_out = "exclude: [{mix.law: erm, mix.switch_epoch: 2}]\n"
    assert list(read(tmp_path, text + left_out).arms) == [
        "erm",  # one point is left, so that the name needs no value
        "uniform switch_epoch=2",
        "uniform switch_epoch=null",
    ]
    beta = "exclude: [{mix.law: {beta: 1.0}, mix.switch_epoch: 2}]\n"
    assert "uniform switch_epoch=2" not in read(tmp_path, text + beta).arms


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("grid: []\n", "4: grid: expected a list of at least one grid, got []"),
        ("grid: [{epoch: [1]}]\n", "4: grid[0].epoch: unknown path (did you mean epochs?)"),
        ("zip: {epochs: [1, 2], data.pool: [1]}\n",
         "4: zip: lists must have equal lengths, got {'epochs': 2, 'data.pool': 1}"),
        ("grid: {epochs: [1, 2]}\nzip: {epochs: [3]}\n", "5: zip.epochs: grid sets this path too"),
        ("grid: {epochs: [1, 2]}\nexclude:\n- {epochs: 1}\n- {epochs: 5}\n",
         "7: exclude[1]: no arm has these values"),
        ("grid: {epochs: [1]}\nexclude: [{epochs: 1}]\n",
         "5: exclude: leaves out every arm, so nothing is left to train"),
        ("exclude: [{epochs: 1}]\n", "4: exclude[0]: no arm has these values"),
    ],
)  # fmt: skip
def test_invalid_grids_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert refusals(tmp_path, SMALL + text) == [problem]


@pytest.mark.parametrize(
    "text",
    [
        SMALL + "grid: {" + ", ".join(f"{p}: {list(range(1, 2000))}" for p in
                                      ("epochs", "batch_size", "data.pool")) + "}\n",
        SMALL.replace("epochs: 4", "epochs: 10000") + "grid: {optimizer.lr: "
        f"{[n / 1000 for n in range(1, 1001)]}}}\n",
    ],
    ids=["grid", "epochs of a grid"],
)  # fmt: skip
def test_a_study_that_is_too_large_is_refused_within_20_seconds(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    lines = refusals(tmp_path, text)
    assert time.process_time() - start < 20  # 2 s if idle; minutes if a check walks every pair
    assert any("are allowed" in line for line in lines)


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
