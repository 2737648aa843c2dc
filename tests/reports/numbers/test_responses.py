from dataclasses import replace
from typing import Any

import pytest

from mixup_core.config.building import with_values
from mixup_core.problem import problem_named
from reports.numbers.responses import ascending, is_geometric, plane_of, response_of
from sweeps.study.study import Study

CONFIG = problem_named("two-layer").config()
SIZES = (4, 6, 8)


def study_of(arms: dict[str, dict[str, Any]]) -> Study:
    return Study(
        name="small",
        description="",
        arms={arm: with_values(CONFIG, values) for arm, values in arms.items()},
        seeds=(0,),
        baseline=next(iter(arms), "erm"),
        source="",
    )


def test_arms_of_a_grid_form_lines_along_its_varying_number() -> None:
    study = study_of(
        {
            f"{law} classes={size}": {"law": law, "data.classes": size}
            for law in ("erm", "midpoint")
            for size in reversed(SIZES)
        }
    )
    response = response_of(study, tuple(study.arms))
    assert response is not None
    assert response.path == "data.classes"
    assert response.values == SIZES
    assert response.levels == ()
    assert response.lines == {
        law: {size: f"{law} classes={size}" for size in SIZES} for law in ("erm", "midpoint")
    }
    assert list(response.lines["erm"]) == list(SIZES)
    assert plane_of(study, tuple(study.arms)) is None


def test_settings_derived_from_the_varying_number_do_not_split_lines() -> None:
    values = zip((0.3, 0.2, 0.1), (5, 6, 6), strict=True)
    study = study_of({f"init={i}": {"network.init": i, "epochs": epochs} for i, epochs in values})
    response = response_of(study, tuple(study.arms))
    assert response is not None
    assert response.path == "network.init"
    assert [list(line) for line in response.lines.values()] == [[0.1, 0.2, 0.3]]


def test_arms_without_the_varying_number_are_drawn_as_levels() -> None:
    laws: dict[str, Any] = {"erm": "erm", **{f"b{a:g}": {"beta": a} for a in (4.0, 1.0, 32.0)}}
    study = study_of({arm: {"law": law} for arm, law in laws.items()})
    response = response_of(study, tuple(study.arms))
    assert response is not None
    assert response.levels == ("erm",)
    assert response.lines == {"law beta": {1.0: "b1", 4.0: "b4", 32.0: "b32"}}


@pytest.mark.parametrize("sizes", [(4,), (4, 6)])
def test_a_number_with_too_few_values_has_no_response(sizes: tuple[int, ...]) -> None:
    study = study_of({f"arm-{size}": {"data.classes": size} for size in sizes})
    assert response_of(study, tuple(study.arms)) is None


def test_a_seed_does_not_count_as_a_varying_number() -> None:
    study = study_of({f"arm-{seed}": {} for seed in range(4)})
    study = replace(
        study, arms={a: replace(c, seed=s) for s, (a, c) in enumerate(study.arms.items())}
    )
    assert response_of(study, tuple(study.arms)) is None


def test_two_crossed_numbers_make_a_map() -> None:
    study = study_of(
        {
            f"p={power} c={size}": {"network.power": power, "data.classes": size}
            for power in (2, 4, 8)
            for size in SIZES
            if (power, size) != (8, 8)
        }
    )
    plane = plane_of(study, tuple(study.arms))
    assert plane is not None
    assert {plane.across, plane.up} == {"data.classes", "network.power"}
    ((_, cells),) = plane.maps.items()
    assert len(cells) == 8
    assert cells[(4.0, 2.0)] == "p=2 c=4"


def test_a_missing_switch_epoch_is_ordered_after_all_others() -> None:
    config = problem_named("images").config(epochs=40, batch_size=8)
    arms = {"erm": {}} | {
        f"a={alpha} s={switch}": {"mix.law": {"beta": alpha}, "mix.switch_epoch": switch}
        for alpha in (0.5, 2.0)
        for switch in (None, 1, 0)
    }
    study = study_of({})
    study = replace(study, arms={arm: with_values(config, v) for arm, v in arms.items()})
    plane = plane_of(study, tuple(arms))
    assert plane is not None
    assert (plane.across, plane.up) == ("mix.switch_epoch", "mix.law.alpha")
    ((_, cells),) = plane.maps.items()
    assert [place for place in sorted(cells, key=ascending) if place[1] == 0.5] == [
        (0.0, 0.5), (1.0, 0.5), (None, 0.5),
    ]  # fmt: skip
    assert cells[(None, 2.0)] == "a=2.0 s=None"
    assert "erm" not in cells.values()


def test_a_number_that_no_arm_of_a_map_sets_is_not_an_axis() -> None:
    config = problem_named("images").config(epochs=40, batch_size=8)
    arms = {
        f"{law} e={epochs} s={switch}": {
            "mix.law": law, "epochs": epochs, "mix.switch_epoch": switch
        }
        for law, switches in (("midpoint", (1, 2)), ("erm", (None,)))
        for epochs in (10, 20, 30)
        for switch in switches
    }  # fmt: skip
    study = study_of({})
    study = replace(study, arms={arm: with_values(config, v) for arm, v in arms.items()})
    plane = plane_of(study, tuple(arms))
    assert plane is not None
    assert {arm.split()[0] for cells in plane.maps.values() for arm in cells.values()} == {
        "midpoint"
    }


@pytest.mark.parametrize(
    ("values", "geometric"),
    [((1, 4, 16), True), ((1, 2, 3, 4), False), ((0, 1, 10), False), ((1, 8), False)],
)
def test_geometric_values_are_drawn_on_a_log_axis(values: tuple[int, ...], geometric: bool) -> None:
    assert is_geometric(values) == geometric
