"""Spelling errors: a value of the wrong type is reported with place, expectation and value."""

import pickle
from typing import Annotated, Any, Literal

import pytest

from mixup_core.config.building import with_values
from mixup_core.config.limits import Among, Range
from mixup_core.config.spelling_errors import SpellingError, expected
from mixup_core.laws import Beta, Erm, Midpoint
from tests.mixup_core.config.journeys import JOURNEY, Bike, Leg, Ramp


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (bool, "true or false"),
        (int | None, "an integer or null"),
        (int | float | str, "an integer, a number or text"),
        (Literal["up", 2], "one of up, 2"),
        (Annotated[str, Among(("inn", "tent"))], "one of inn, tent"),
        (Annotated[int, "unmarked"], "an integer"),
        (Annotated[int, Range(1)] | Annotated[int, Range(2)], "an integer"),
        (Annotated[int, Range(1)] | None, "an integer or null"),
        (tuple[Annotated[int, Range(1)], ...], "a list of integers"),
        (tuple[Annotated[str, Among(("inn", "tent"))], ...], "a list of (one of inn, tent)"),
        (tuple[int, ...], "a list of integers"),
        (tuple[float, ...] | None, "a list of numbers or null"),
        (tuple[str, ...], "a list of texts"),
        (tuple[Leg, ...], "a list of ({law: LAW, until: UNTIL})"),
        (Erm | Midpoint | Beta, "erm, midpoint or {beta: ALPHA}"),
        (Ramp, "{ramp: {shape: SHAPE, steps: STEPS, law: LAW}}"),
        (Bike, "{name: bike, speed: SPEED}"),
    ],
    ids=str,
)
def test_the_description_of_an_expected_type_shows_its_written_form(hint: Any, text: str) -> None:
    assert expected(hint) == text


def test_adding_a_path_to_a_spelling_error_changes_its_message() -> None:
    error = SpellingError("an integer", "3")
    assert (str(error), error.path) == ("expected an integer, got text '3'", "")
    inside = error.within("days").within("journey")
    assert (str(inside), inside.path) == (
        "journey.days: expected an integer, got text '3'", "journey.days",
    )  # fmt: skip


def test_an_unknown_name_is_refused_with_the_known_names() -> None:
    with pytest.raises(SpellingError) as caught:
        with_values(JOURNEY, {"stay": {"place": "hotel"}})
    assert caught.value.names == ("inn", "tent")
    assert caught.value.path == "stay.place"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.names, again.path) == (
        str(caught.value), ("inn", "tent"), "stay.place",
    )  # fmt: skip
