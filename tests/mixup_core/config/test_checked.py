"""Checked dataclasses: the range of every field is enforced, then rules between fields."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest

from mixup_core.config.building import built
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Among, Count, Distinct, Matching, Range, Share, Whole
from mixup_core.rules import RuleError, require


@dataclass(frozen=True, kw_only=True, slots=True)
class Crate(Checked):
    bottles: Count = 6
    full: Share | Literal["auto"] | None = None
    label: Count | Annotated[str, Matching("[a-z]*", "be a-z")] = ""
    kind: Annotated[str, Among(("wood", "wire"))] = "wood"
    rows: Whole | Annotated[tuple[Count, ...], Distinct(may_be_empty=False)] = 0
    holes: Annotated[tuple[Count, ...], Distinct()] | None = None
    weight: Annotated[float, Range(0, 1, "()", hint="give it in tonnes")] = 0.1

    def check(self) -> None:
        require(self.rows != 7, "rows != 7", self, "rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pallet(Crate):
    crates: Count = 1


def broken(of: Any = Crate, **values: Any) -> RuleError:
    with pytest.raises(RuleError) as caught:
        of(**values)
    return caught.value


@pytest.mark.parametrize(
    ("values", "rule", "got"),
    [
        ({"bottles": 0}, "bottles >= 1", 0),
        ({"full": 1.5}, "0 <= full <= 1", 1.5),
        ({"label": "A"}, "label must be a-z", "A"),
        ({"label": 0}, "label >= 1", 0),
        ({"kind": "tin"}, "kind must be one of wood, wire", "tin"),
        ({"rows": -1}, "rows >= 0", -1),
        ({"rows": ()}, "items of rows must be distinct, and there must be at least one", []),
        ({"rows": (1, 3, 1, 4)}, "items of rows must be distinct, and there must be at least one",
         [1]),
        ({"rows": (1, 0, -1)}, "each of rows >= 1", [0, -1]),
        ({"rows": tuple(range(-9, 0))}, "each of rows >= 1", [-9, -8, -7, -6, -5]),
        ({"rows": 7}, "rows != 7", 7),
        *(({"holes": of((0,))}, "each of holes >= 1", [0]) for of in (list, tuple)),
        *(({"holes": of((1, 1))}, "items of holes must be distinct", [1]) for of in (list, tuple)),
    ],
)  # fmt: skip
def test_a_value_beyond_its_limit_is_refused_by_its_rule(
    values: dict[str, Any], rule: str, got: object
) -> None:
    (name,) = values
    for error in (broken(**values), broken(Pallet, **values)):
        assert (error.rule, error.values, error.fields) == (rule, {name: got}, (name,))


def test_values_within_their_limits_are_accepted() -> None:
    crate = Crate(bottles=1, full=1.0, label="a", kind="wire", rows=(3, 1), weight=0.9)
    assert (crate.rows, Crate().full) == ((3, 1), None)
    assert Pallet(crates=2, label=1, full=0).bottles == 6
    assert built(Crate, {"full": "auto"}) == Crate(full="auto")


def test_the_hint_of_a_limit_ends_its_message() -> None:
    message = "`0 < weight < 1` must hold, got (weight=2); give it in tonnes."
    assert str(broken(weight=2)) == message


def test_limits_are_checked_before_other_rules_also_of_a_subclass() -> None:
    assert broken(bottles=0, rows=7).fields == ("bottles",)
    assert broken(Pallet, crates=0).rule == "crates >= 1"


def test_replace_checks_limits_again_and_instances_have_no_dict() -> None:
    with pytest.raises(RuleError, match="bottles >= 1"):
        replace(Crate(), bottles=-1)
    assert not hasattr(Crate(), "__dict__")


def test_a_value_of_another_shape_raises_a_type_error() -> None:
    for name, value in {"holes": 3, "bottles": (0,), "weight": "1", "crates": None}.items():
        with pytest.raises(TypeError):
            Pallet(**{name: value})
