"""Parts: the possible contents of a field; every leaf path of a type occurs once."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import pytest

from mixup_core.config.limits import Among, Range
from mixup_core.config.parts import (
    REQUIRED,
    kind_name,
    leaves,
    limits,
    members,
    parts,
    places,
    unmarked,
    words,
)
from mixup_core.laws import Erm
from tests.mixup_core.config.journeys import Bike, Journey, Leg, Stay, Winding

PARTS = {part.name: part for part in parts(Journey)}


def test_parts_are_the_fields_in_their_order() -> None:
    assert list(PARTS) == [
        "road", "detour", "vehicle", "spare", "stay", "days", "roads", "fleet", "stops", "cost",
    ]  # fmt: skip
    assert (PARTS["days"].default, PARTS["stay"].default) == (REQUIRED, Stay())


@pytest.mark.parametrize(
    ("trait", "names"),
    [
        ("options", {"road", "detour", "vehicle", "spare"}),
        ("is_named", {"vehicle", "spare"}),
        ("is_optional", {"detour", "spare"}),
        ("is_group", {"stay"}),
    ],
)
def test_parts_are_choices_groups_or_plain(trait: str, names: set[str]) -> None:
    assert {name for name, part in PARTS.items() if getattr(part, trait)} == names


def test_the_kind_name_is_the_tag_or_the_name_of_the_kind() -> None:
    assert [kind_name(kind) for kind in (Erm, Bike, Leg)] == ["erm", "bike", ""]
    assert (PARTS["road"].kind_path, PARTS["vehicle"].kind_path) == ("road", "vehicle.name")


def test_members_are_the_types_of_a_union_or_the_type_itself() -> None:
    assert members(int | None) == (int, type(None))
    assert members(tuple[int, ...]) == (tuple[int, ...],)


def test_types_are_separated_from_their_limits() -> None:
    assert unmarked(Annotated[int, Range(1)]) is int
    assert (unmarked(int), unmarked(tuple[int, ...])) == (int, tuple[int, ...])
    assert limits(Annotated[int, Range(1), "a remark", Range(2)]) == (Range(1), Range(2))
    assert limits(int) == limits(int | None) == limits(Annotated[Range, "of no number"]) == ()


def test_words_are_the_values_of_literals_and_the_names_of_limits() -> None:
    assert words(Literal["up", 2]) == ("up", 2)
    assert words(Annotated[str, Among({"inn": 1, "tent": 2})]) == ("inn", "tent")
    assert words(Annotated[int, Range(1)]) == words(int) == words(tuple[str, ...]) == ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Short:
    tag: ClassVar = "short"
    miles: Annotated[int, Range(1, 9)] = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Long:
    tag: ClassVar = "long"
    miles: Annotated[int, Range(10)] = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    way: Short | Long = field(default_factory=Short)
    rests: Annotated[int, Range(0)] = 0


def test_a_leaf_shared_by_several_kinds_accepts_the_values_of_each_kind() -> None:
    found = leaves(Walk)
    assert list(found) == ["way", "way.miles", "rests"]
    assert members(found["way.miles"].part.hint) == (
        Annotated[int, Range(1, 9)], Annotated[int, Range(10)],
    )  # fmt: skip
    assert found["way.miles"].part.default == 1
    assert found["rests"].part.hint == Annotated[int, Range(0)]


def test_leaves_list_each_path_once_with_its_part_and_owner() -> None:
    found = leaves(Journey)
    assert found["vehicle.name"].part.is_named
    assert set(found["road"].part.options) == {"straight", "winding", "ramp", "wrapped"}
    assert found["days"].part.default is REQUIRED
    assert found["vehicle.speed"].part.default == 1.0
    assert found["road.legs"].owner is Winding
    assert found["road.legs"].part.hint == tuple[Leg, ...]


def test_places_are_the_leaves_with_groups_of_named_choices_and_fields_of_list_items() -> None:
    assert places(Journey) == set(leaves(Journey)) | {
        "vehicle", "spare", "road.legs.law", "road.legs.until", "detour.legs.law",
        "detour.legs.until", "roads.legs", "roads.shape", "roads.steps", "roads.law", "roads.until",
        "fleet.seats", "fleet.speed", "stops.law", "stops.until", "stops.alpha",
    }  # fmt: skip
