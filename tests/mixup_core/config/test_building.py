"""Building: trees are restored from dotted paths; errors name the place and the reason."""

from functools import partial
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixup_core.config import building
from mixup_core.config.building import built, carried, check_owner, parsed, with_values
from mixup_core.config.limits import Among
from mixup_core.config.parts import REQUIRED, leaves, parts
from mixup_core.config.written_forms import SpellingError, flatten, spelled
from mixup_core.images.data.sets import DATA_NAMES
from mixup_core.laws import Beta, Law
from mixup_core.problem import PROBLEMS, problem_named
from mixup_core.rules import RuleError
from tests.mixup_core.config.journeys import (
    JOURNEY,
    Bike,
    Bus,
    Journey,
    Leg,
    Ramp,
    Straight,
    Winding,
)
from tests.mixup_core.random_trees import spellings, trees


@given(one=trees(JOURNEY), other=trees(JOURNEY))
def test_a_tree_round_trips_through_its_flat_form(one: Journey, other: Journey) -> None:
    assert with_values(one, flatten(one)) == one
    assert with_values(one, flatten(other)) == other
    assert built(Journey, flatten(one)) == one


@given(data=st.data())
@pytest.mark.parametrize(
    "hint",
    [part.hint for part in parts(Journey)] + [Law, tuple[Leg, ...], tuple[Law, ...] | None],
    ids=str,
)
def test_a_value_round_trips_through_its_spelling(hint: Any, data: st.DataObject) -> None:
    written = data.draw(spellings(hint))
    try:
        value = parsed(hint, written)
    except RuleError:
        return
    assert parsed(hint, spelled(value)) == value
    assert parsed(hint, value) == value


def test_a_boolean_is_not_accepted_for_an_equal_number_or_word() -> None:
    assert parsed(Literal[1], 1) == 1
    assert [parsed(Literal[False, "no"], value) for value in (False, "no")] == [False, "no"]
    for hint, value in ((Literal[1], True), (Literal[False], 0), (Literal["true"], True)):
        with pytest.raises(SpellingError, match="expected one of"):
            parsed(hint, value)


def test_a_choice_is_changed_by_its_kind_or_by_one_field() -> None:
    ramp = with_values(JOURNEY, {"road": "ramp", "road.shape": "down"})
    assert ramp.road == Ramp(shape="down")
    assert with_values(ramp, {"road.law.alpha": 2.0, "road.law": "beta"}).road == Ramp(
        shape="down", law=Beta(alpha=2.0)
    )
    assert with_values(ramp, {"road": {"winding": [{"law": {"beta": 1}}]}}).road == Winding(
        legs=(Leg(law=Beta(alpha=1.0)),)
    )
    assert with_values(ramp, {"road": "ramp"}).road == Ramp(shape="down")


def test_an_optional_choice_can_be_set_and_unset() -> None:
    spared = with_values(JOURNEY, {"spare.name": "bike", "detour": "straight"})
    assert (spared.spare, spared.detour) == (Bike(), Straight())
    assert with_values(spared, {"spare": None, "detour": None}) == JOURNEY
    assert with_values(spared, {"spare.name": None}).spare is None


@pytest.mark.parametrize(
    ("values", "rule", "fields"),
    [
        ({"days": 0}, "days >= 1", ("days",)),
        ({"road": {"winding": [{"law": "erm"}, {"law": "erm", "until": 0}]}}, "until >= 1",
         ("road.legs.1.until",)),
        ({"road": {"winding": [{"law": {"beta": 0}}]}}, "1e-6 <= alpha <= 1e6",
         ("road.legs.0.law.alpha",)),
        ({"stops": [{"law": "erm", "until": 0}]}, "until >= 1", ("stops.0.until",)),
        ({"stops": ["erm", {"until": 1}]}, "law must be given", ("stops.1.law",)),
        ({"road": "winding"}, "road.legs must be given", ("road.legs",)),
        ({"road.shape": "up"}, "shape needs road to be ramp", ("road.shape", "road")),
        *(({f"{path}.name": "bike", f"{path}.seats": 1}, f"seats needs {path}.name to be bus",
           (f"{path}.seats", f"{path}.name")) for path in ("vehicle", "spare")),
        ({"detour.shape": "up"}, "detour must be set before its fields can be set",
         ("detour", "detour.shape")),
    ],
)  # fmt: skip
def test_a_rule_error_names_the_paths_of_its_fields(
    values: dict[str, Any], rule: str, fields: tuple[str, ...]
) -> None:
    for make in (partial(with_values, JOURNEY), lambda given: built(Journey, {"days": 1} | given)):
        with pytest.raises(RuleError) as caught:
            make(values)
        assert caught.value.rule == rule
        assert caught.value.fields == fields
        assert rule in str(caught.value)


def test_a_missing_required_value_is_refused_by_name() -> None:
    with pytest.raises(RuleError) as caught:
        built(Journey, {})
    assert (caught.value.rule, caught.value.fields) == ("days must be given", ("days",))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"days": "3"}, "days: expected an integer, got text '3'"),
        ({"days": True}, "days: expected an integer, got the boolean true"),
        ({"days": 1.0}, "days: expected an integer, got 1.0"),
        ({"cost": "much"}, "cost: expected a number or null, got text 'much'"),
        ({"road": "rail"}, "road: expected one of straight, winding, ramp, wrapped, got text"),
        ({"road": {"rail": 1}}, "road: expected straight, "),
        ({"road": {}}, "road: expected straight, "),
        ({"road": {"ramp": {"steps": [1, "x"]}}}, "road.steps.1: expected a number, got text 'x'"),
        ({"road": {"ramp": {"shape": "flat"}}}, "road.shape: expected one of up, down, got text"),
        ({"road": {"winding": [{"law": "x"}]}}, "road.legs.0.law: expected one of erm, midpoint, "),
        ({"road": {"winding": [{"low": "erm"}]}}, "road.legs.0: expected one of law, until, got"),
        ({"detour": {"ramp": {"law": {"beta": "x"}}}}, "detour.law.alpha: expected a number, got"),
        ({"stops": [{"low": 1, "until": 1}]}, "stops.0: expected {law: LAW, until: UNTIL}, erm or"),
        ({"stops": [""]}, "stops.0: expected {law: LAW, until: UNTIL}, erm or {beta: ALPHA}, got"),
        ({"vehicle": {"name": "car"}}, "vehicle.name: expected one of bus, bike, got text 'car'"),
        ({"vehicle": {"name": ["car"]}}, "vehicle: expected "),
        *(({"vehicle.name": name}, "vehicle.name: expected one of bus, bike, got ")
          for name in ("car", None, ["bus"])),
        ({"vehicle": {"name": "bus", "sails": 1}}, "vehicle: expected one of seats, speed, got"),
        ({"stay.place": "hotel"}, "stay.place: expected one of inn, tent, got text 'hotel'"),
        ({"stay": 1}, "stay: expected {place: PLACE, is_paid: IS_PAID}, got 1"),
        ({"stay.is_paid": 1}, "stay.is_paid: expected true or false, got 1"),
        ({"fleet": "bus"}, r"fleet: expected a list of .* or null, got text 'bus'"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_refused_with_its_path(
    values: dict[str, Any], message: str
) -> None:
    for make in (partial(with_values, JOURNEY), lambda given: built(Journey, {"days": 1} | given)):
        with pytest.raises(SpellingError, match=f"^{message.replace('{', '[{]')}"):
            make(values)


@pytest.mark.parametrize("path", ["", "nights", "road.x.y", "days.x", "stay.floor", "road.legs.0"])
def test_a_path_that_names_no_field_is_refused(path: str) -> None:
    with pytest.raises(KeyError, match="path must name a field"):
        with_values(with_values(JOURNEY, {"road": {"winding": []}}), {path: 1})


def test_an_unknown_path_is_refused_with_the_existing_fields() -> None:
    with pytest.raises(KeyError, match="Stay has place, is_paid"):
        with_values(JOURNEY, {"stay.floor": 1})
    with pytest.raises(KeyError, match="Straight has no fields"):
        built(Straight, {"width": 1})


@pytest.mark.parametrize("name", PROBLEMS)
@given(data=st.data())
def test_every_configuration_round_trips_through_its_spelling(
    name: str, data: st.DataObject
) -> None:
    """Configurations of every problem: defaults with required fields, then random changes."""
    kind = problem_named(name).config
    required = {
        path: data.draw(spellings(leaf.part.hint))
        for path, leaf in leaves(kind).items()
        if leaf.part.default is REQUIRED and leaf.owner is kind
    }
    try:
        start = built(kind, required)
    except RuleError:
        return
    config = data.draw(trees(start))
    assert with_values(start, flatten(config)) == config
    assert parsed(kind, spelled(config)) == config


DATA_NAME = Annotated[str, Among(DATA_NAMES)]


@pytest.mark.parametrize(
    ("hint", "written", "noun"),
    [
        (Law, "betta", "law"), (Law, {"betta": 1.0}, "law"), (Law, {"beta": 1.0, "erm": {}}, ""),
        (Law, 3, ""), (DATA_NAME, "digit", "dataset"), (DATA_NAME, 3, ""),
    ],
)  # fmt: skip
def test_only_an_unknown_name_has_the_noun_of_its_registry(
    hint: Any, written: Any, noun: str
) -> None:
    with pytest.raises(SpellingError) as caught:
        parsed(hint, written)
    assert caught.value.noun == noun


PARTS = {part.name: part for part in parts(Journey)}


def test_no_values_are_carried_from_none_or_to_a_kind_with_required_fields() -> None:
    assert carried(Bus(seats=3, speed=0.7), Bike) == {"speed": 0.7}
    assert carried(None, Bike) == {}
    assert carried(Straight(), Winding) == {}


def test_a_field_is_accepted_only_for_kinds_that_have_the_field() -> None:
    check_owner(PARTS["road"], Ramp, "shape", "road", "up")
    check_owner(PARTS["vehicle"], Bike, "speed", "vehicle", 1.0)
    check_owner(PARTS["road"], Straight, "width", "road", 1)  # nobody's: no path names it


def test_changing_the_kind_keeps_shared_fields_that_are_not_set_with_it() -> None:
    assert with_values(JOURNEY, {"vehicle.name": "bike"}).vehicle == Bike()
    fast = with_values(JOURNEY, {"vehicle.speed": 1.5})
    assert with_values(fast, {"vehicle.name": "bike"}).vehicle == Bike(speed=1.5)
    with pytest.raises(RuleError) as caught:
        with_values(with_values(JOURNEY, {"vehicle.speed": 3.0}), {"vehicle.name": "bike"})
    assert caught.value.fields == ("vehicle.speed",)
    fast = with_values(JOURNEY, {"vehicle.speed": 20.0})
    slowed = with_values(fast, {"vehicle.name": "bike", "vehicle.speed": 0.7})
    assert slowed.vehicle == Bike(speed=0.7)


@pytest.mark.parametrize(("most", "hint"), [(0, ""), *((n, "write road: {ramp: ") for n in (1, 2))])
def test_a_refused_field_of_a_tagged_kind_is_answered_with_a_few_forms(
    monkeypatch: pytest.MonkeyPatch, most: int, hint: str
) -> None:
    monkeypatch.setattr(building, "_MOST_FORMS", most)
    with pytest.raises(RuleError) as caught:
        check_owner(PARTS["road"], Straight, "shape", "road", "up")
    assert caught.value.hint.startswith(hint)
    assert bool(caught.value.hint) == bool(hint)
    with pytest.raises(RuleError, match=r"name='bike', vehicle\.seats=3") as caught:
        check_owner(PARTS["vehicle"], Bike, "seats", "vehicle", 3)
    assert caught.value.hint == "", "a kind that has a name is not written as a form"
