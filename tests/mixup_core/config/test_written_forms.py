"""Written forms: trees as dotted paths, choices in their shortest form."""

import json
import pickle
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given

from mixup_core.config.building import parsed, with_values
from mixup_core.config.limits import Among, Range
from mixup_core.config.parts import REQUIRED, leaves
from mixup_core.config.written_forms import (
    Pairs,
    SpellingError,
    Under,
    defaults,
    expected,
    flatten,
    possible_values,
    spelled,
    spellings_under,
    tag_meant,
)
from mixup_core.config.written_forms import spellings as examples
from mixup_core.laws import Beta, BetaAb, Discrete, Erm, Law, Midpoint
from mixup_core.rules import RuleError
from tests.mixup_core.config.journeys import (
    JOURNEY,
    Bike,
    Bus,
    Journey,
    Leg,
    Ramp,
    Road,
    Winding,
    Wrapped,
)
from tests.mixup_core.random_trees import spellings


def test_the_paths_of_flatten_are_leaves_of_the_type() -> None:
    winding = Winding(legs=(Leg(law=Erm(), until=2),))
    flat = flatten(Journey(days=1, road=winding, spare=Bike()))
    assert set(flat) <= set(leaves(Journey))
    assert flat["road"] == "winding"
    assert flat["road.legs"] == ({"law": "erm", "until": 2},)
    assert (flat["detour"], flat["spare.name"], flat["spare.speed"]) == (None, "bike", 0.5)


def test_defaults_come_from_the_chosen_kind() -> None:
    journey = with_values(JOURNEY, {"road": "ramp", "vehicle.name": "bike"})
    assert defaults(journey) == {
        "road": "straight", "road.shape": "up", "road.steps": (0.5, 1.0), "road.law": "midpoint",
        "detour": None, "vehicle.name": "bus", "vehicle.speed": 0.5, "spare.name": None,
        "stay.place": "inn", "stay.is_paid": False, "days": REQUIRED, "roads": (), "fleet": None,
        "cost": None, "stops": (),
    }  # fmt: skip
    assert list(defaults(journey)) == list(flatten(journey))


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        (Erm(), "erm"),
        (Beta(alpha=0.5), {"beta": 0.5}),
        (BetaAb(a=2.0, b=5.0), {"beta": {"a": 2.0, "b": 5.0}}),
        (Ramp(), {"ramp": {"shape": "up", "steps": (0.5, 1.0), "law": "midpoint"}}),
        (Winding(legs=(Leg(law=Erm()),)), {"winding": ({"law": "erm", "until": None},)}),
        (Bike(), {"name": "bike", "speed": 0.5}),
        ((Leg(law=Erm()), Beta(alpha=1.0)), ({"law": "erm", "until": None}, {"beta": 1.0})),
        (Wrapped(until=Leg(law=Erm())), {"wrapped": {"law": "erm", "until": None}}),
    ],
)
def test_a_choice_is_written_in_its_shortest_form(value: Any, spelling: Any) -> None:
    assert spelled(value) == spelling


@dataclass(frozen=True, kw_only=True, slots=True)
class Tour:
    roads: tuple[Road, ...] = (Ramp(), Ramp(shape="down"))


def test_defaults_are_written_briefly() -> None:
    assert defaults(Tour(roads=())) == {"roads": ("ramp", {"ramp": "down"})}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stone:
    miles: int
    depth: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """A dataclass whose first field, written alone, would look like its own fields."""

    tag: ClassVar = "marked"

    miles: Stone
    depth: int = 0


def test_a_field_that_could_be_read_as_all_fields_is_written_with_its_name() -> None:
    for fields in ({"miles": 3}, {"miles": 3, "depth": 1}):
        value = Marked(miles=Stone(**fields))
        assert spelled(value, brief=True) == {"marked": {"miles": fields}}
        assert parsed(Marked, spelled(value, brief=True)) == value


@given(one=spellings(Road), other=spellings(Road))
def test_brief_spellings_are_equal_only_for_equal_values(one: Any, other: Any) -> None:
    try:
        first, second = parsed(Road, one), parsed(Road, other)
    except RuleError:
        return
    assert (first == second) == (spelled(first, brief=True) == spelled(second, brief=True))


def test_a_brief_spelling_leaves_out_defaults_and_names_the_other_fields() -> None:
    assert spelled(Ramp(), brief=True) == "ramp"
    assert spelled(Ramp(shape="down"), brief=True) == {"ramp": "down"}
    assert spelled(Ramp(law=Erm()), brief=True) == {"ramp": {"law": "erm"}}
    flat = flatten(Journey(days=1, roads=(Winding(legs=(Leg(law=Midpoint()),)),)), brief=True)
    assert flat["roads"] == ({"winding": ({"law": "midpoint"},)},)
    assert flatten(Journey(days=1, roads=(Winding(legs=(Leg(law=Midpoint()),)),))) != flat


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (bool, "true or false"),
        (type(None), "null"),
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Coast:
    tag: ClassVar = "coast"
    short: ClassVar = Under("sea")

    bays: int


KINDS = {kind.tag: kind for kind in (Erm, Beta, BetaAb, Coast)}


def test_the_notations_under_a_tag_are_those_that_begin_with_it() -> None:
    assert spellings_under(KINDS, "erm") == "erm"
    assert spellings_under(KINDS, "beta") == "{beta: ALPHA} or {beta: {a: A, b: B}}"


PAIRS = Pairs("x", "y")
WHOLE = {
    "type": "object", "required": ["bays"], "additionalProperties": False,
    "properties": {"bays": {"type": "integer"}, "y": {"items": {"type": "number"}}},
}  # fmt: skip


def _schema(form: Under | Pairs) -> Any:
    return jsonschema.Draft202012Validator(form.schema(WHOLE))


@pytest.mark.parametrize(
    ("form", "value", "fields"),
    [
        (Coast.short, {"sea": {"bays": 2}}, {"bays": 2}),
        *((Coast.short, other, None) for other in (
            {"sea": {}}, {"sea": 2}, {"sea": {"hills": 2}}, {"sky": {"bays": 2}},
            {"sea": {"bays": 2}, "sky": 1}, {}, "sea", 3)),
        (PAIRS, {"1": 0.3, 0.5: 0.7, "3e-1": 1}, {"x": [0.3, 0.5, 1.0], "y": [1, 0.7, 0.3]}),
        *((PAIRS, other, None) for other in ({}, {"a": 1, 2: 1}, {None: 1, 2: 1}, "1", 1)),
    ],
)  # fmt: skip
def test_a_short_form_is_read_and_other_notations_are_not(
    form: Under | Pairs, value: Any, fields: dict[str, Any] | None
) -> None:
    assert form.fields(value, ["bays"]) == fields
    if fields is not None:
        assert form.fields(form.written(fields), ["bays"]) == fields
    assert _schema(form).is_valid(json.loads(json.dumps(value))) == (fields is not None)
    names = {tag: ["bays"] for tag in KINDS}
    if isinstance(value, dict) and len(value) == 1:
        assert tag_meant(KINDS, value, names) == ("coast" if fields else next(iter(value)))


def test_json_schema_needs_two_numbers_in_pairs() -> None:
    assert not any(map(_schema(PAIRS).is_valid, ({"0.5": 1}, {"0.5": 1, "1": "a"})))
    assert _schema(PAIRS).is_valid({"0.5": 1, "1": 1})


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ({"beta": {"a": 2.0}}, r"b must be given"),
        ({"beta": {"a": 2.0, "alpha": 1.0}}, "expected {beta: ALPHA} or {beta: {a: A, b: B}}, got"),
        ({0.5: 0.7, 1.0: 0.4}, "must add up to 1, got"),
        ({0.5: 0.7, 2.0: 0.3}, "`0 <= each of values <= 1` must hold"),
        ({0.5: 0.7, "x": 0.3}, "expected erm, midpoint, {beta: ALPHA}, {beta: {a: A, b: B}}"),
    ],
)
def test_a_wrong_short_form_is_refused(spelling: object, message: str) -> None:
    with pytest.raises((RuleError, SpellingError), match=message):
        parsed(Law, spelling)


def test_an_unknown_name_is_refused_with_its_path_and_the_known_names() -> None:
    with pytest.raises(SpellingError) as caught:
        with_values(JOURNEY, {"stay": {"place": "hotel"}})
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert str(error) == "stay.place: expected one of inn, tent, got text 'hotel'"
        assert (error.names, error.path) == (("inn", "tent"), "stay.place")
    assert str(SpellingError("an integer", "3")) == "expected an integer, got text '3'"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    color: Literal["red", "blue", "white"]
    size: Annotated[float, Range(2.5, 30)]


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (bool | None, [False, True, None]),
        (Annotated[int, Range(3, 5)], [3, 4, 5]),
        (Annotated[float, Range(2.5, 3)], [2.5]),
        (Annotated[float, Range(700.0)], [1000.0, 700]),
        (
            tuple[Literal["a", "b", "c"], ...],
            [[], ["a"], ["b"], ["c"], ["a", "b"], ["a", "a"], ["b", "b"], ["c", "c"]],
        ),
    ],
)
def test_the_examples_of_a_type_lie_within_its_limits(hint: Any, values: list[Any]) -> None:
    assert list(dict.fromkeys(map(repr, possible_values(hint)))) == list(map(repr, values))


@pytest.mark.parametrize("hint", [int, float])
def test_example_numbers_increase_and_whole_ones_have_many_divisors(hint: Any) -> None:
    numbers = possible_values(hint)
    assert [0, *numbers[1:]] == sorted(set(numbers))
    for divisor in range(2, 7) if hint is int else ():
        two = [number for number in numbers if number > 6 and number % divisor == 0][1:]
        assert two, "checks compare two values of a field, also of one that needs multiples"


@pytest.mark.parametrize(
    ("hint", "kind"),
    [(Road, Ramp), (Road, Winding), (Law, Beta), (Law, Discrete), (Bus | Bike, Bus)],
)
def test_examples_of_a_dataclass_are_read_as_that_dataclass(hint: Any, kind: Any) -> None:
    found = []
    for example in examples(kind):
        with suppress(RuleError):
            found.append(type(parsed(hint, example)))
    assert set(found) == {kind}


def test_each_example_of_a_dataclass_changes_one_required_field() -> None:
    first, *others = examples(Sign)
    assert first == {"color": "red", "size": 4.0}
    colors, sizes = others[:2], others[2:]
    assert colors == [first | {"color": "blue"}, first | {"color": "white"}]
    assert sizes
    assert all(2.5 <= sign["size"] <= 30 and sign["color"] == "red" for sign in sizes)
