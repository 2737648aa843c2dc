"""Choices: a change of kind keeps common fields; fields of other kinds are refused."""

import pytest

from mixup_core.config import choices
from mixup_core.config.building import with_values
from mixup_core.config.choices import carried, check_owner, chosen_kind
from mixup_core.config.parts import parts
from mixup_core.config.spelling_errors import SpellingError
from mixup_core.rules import RuleError
from tests.mixup_core.config.journeys import JOURNEY, Bike, Bus, Journey, Ramp, Straight, Winding

PARTS = {part.name: part for part in parts(Journey)}


def test_a_kind_is_chosen_by_its_tag_or_name() -> None:
    assert chosen_kind(PARTS["road"], "ramp", "road") is Ramp
    assert chosen_kind(PARTS["vehicle"], "bike", "vehicle.name") is Bike


@pytest.mark.parametrize("unknown", ["car", None, ["bus"]])
def test_an_unknown_kind_is_refused_with_the_known_kinds(unknown: object) -> None:
    with pytest.raises(SpellingError, match=r"^vehicle\.name: expected one of bus, bike") as caught:
        chosen_kind(PARTS["vehicle"], unknown, "vehicle.name")
    assert (caught.value.names, caught.value.path) == (("bus", "bike"), "vehicle.name")


def test_no_values_are_carried_from_none_or_to_a_kind_with_required_fields() -> None:
    assert carried(Bus(seats=3, speed=0.7), Bike) == {"speed": 0.7}
    assert carried(None, Bike) == {}
    assert carried(Straight(), Winding) == {}


def test_a_field_is_accepted_only_for_kinds_that_have_the_field() -> None:
    check_owner(PARTS["road"], Ramp, "shape", "road", "up")
    check_owner(PARTS["vehicle"], Bike, "speed", "vehicle", 1.0)
    check_owner(PARTS["road"], Straight, "width", "road", 1)  # nobody's: no path names it
    with pytest.raises(RuleError) as caught:
        check_owner(PARTS["spare"], Bike, "seats", "trip.spare", 3)
    assert caught.value.rule == "seats needs trip.spare.name to be bus"
    assert caught.value.fields == ("trip.spare.seats", "trip.spare.name")
    assert "trip.spare.name='bike', trip.spare.seats=3" in str(caught.value)


def test_changing_the_kind_keeps_the_fields_that_both_kinds_share() -> None:
    fast = with_values(JOURNEY, {"vehicle.speed": 1.5})
    assert with_values(fast, {"vehicle.name": "bike"}).vehicle == Bike(speed=1.5)
    with pytest.raises(RuleError) as caught:
        with_values(with_values(JOURNEY, {"vehicle.speed": 3.0}), {"vehicle.name": "bike"})
    assert caught.value.fields == ("vehicle.speed",)


def test_a_field_invalid_for_a_new_kind_can_be_set_together_with_the_kind() -> None:
    fast = with_values(JOURNEY, {"vehicle.speed": 20.0})
    slowed = with_values(fast, {"vehicle.name": "bike", "vehicle.speed": 0.7})
    assert slowed.vehicle == Bike(speed=0.7)


@pytest.mark.parametrize(("most", "hint"), [(0, ""), (1, "write road: {ramp: ")])
def test_a_refused_field_of_a_tagged_kind_is_answered_with_a_few_forms(
    monkeypatch: pytest.MonkeyPatch, most: int, hint: str
) -> None:
    monkeypatch.setattr(choices, "_MOST_FORMS", most)
    with pytest.raises(RuleError) as caught:
        check_owner(PARTS["road"], Straight, "shape", "road", "up")
    assert caught.value.hint.startswith(hint)
    assert bool(caught.value.hint) == bool(hint)
    with pytest.raises(RuleError) as caught:
        check_owner(PARTS["vehicle"], Bike, "seats", "vehicle", 3)
    assert caught.value.hint == "", "a kind that has a name is not written as a form"
