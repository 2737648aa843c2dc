from typing import Any

from mixup_core.config.building import with_values
from mixup_core.problem import problem_named
from reports.numbers.responses import plane_of, response_of
from sweeps.study.study import Study
from tests.reports.synthetic import study_of

CONFIG = problem_named("two-layer").config()
SIZES = (4, 6, 8)


def study_with(arms: dict[str, dict[str, Any]]) -> Study:
    return study_of("small", {arm: with_values(CONFIG, values) for arm, values in arms.items()})


def test_arms_of_a_grid_form_lines_along_its_varying_number() -> None:
    study = study_with(
        {
            f"{law} classes={size}": {"law": law, "data.classes": size}
            for law in ("erm", "midpoint")
            for size in reversed(SIZES)
        }
    )
    response = response_of(study, tuple(study.arms))
    assert response.path == "data.classes"
    assert response.values == SIZES
    assert response.levels == ()
    assert response.lines == {
        law: {size: f"{law} classes={size}" for size in SIZES} for law in ("erm", "midpoint")
    }
    assert list(response.lines["erm"]) == list(SIZES)
    assert plane_of(study, tuple(study.arms)) is None


def test_arms_without_the_varying_number_are_drawn_as_levels() -> None:
    laws: dict[str, Any] = {"erm": "erm", **{f"b{a:g}": {"beta": a} for a in (4.0, 1.0, 32.0)}}
    study = study_with({arm: {"law": law} for arm, law in laws.items()})
    response = response_of(study, tuple(study.arms))
    assert response.levels == ("erm",)
    assert response.lines == {"law beta": {1.0: "b1", 4.0: "b4", 32.0: "b32"}}


def test_two_crossed_numbers_make_a_map() -> None:
    study = study_with(
        {
            f"p={power} c={size}": {"network.power": power, "data.classes": size}
            for power in (2, 4, 8)
            for size in SIZES
            if (power, size) != (8, 8)
        }
    )
    plane = plane_of(study, tuple(study.arms))
    assert {plane.across, plane.up} == {"data.classes", "network.power"}
    ((_, cells),) = plane.maps.items()
    assert len(cells) == 8
    assert cells[(4.0, 2.0)] == "p=2 c=4"
