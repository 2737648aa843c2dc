from collections.abc import Iterator
from typing import Any

import pytest

from mixup_core.config.parts import members, parts, unmarked
from mixup_core.problem import PROBLEMS, problem_named
from mixup_core.rules import RuleError
from sweeps.reading.strict_yaml import REFUSED
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, blamed
from tests.sweeps.reading.plants import Bed, Drip, Flood, Plant, Sand

PATHS = TreePaths(Plant, {"label": "is not set in a study file"})
BLANK = {"species": "rose", "days": 4}


def level(**values: Any) -> Settings:
    return {
        path.replace("__", "."): Setting(value=value, at=("base",))
        for path, value in values.items()
    }


def test_paths_are_the_fields_of_the_tree_without_reserved_ones() -> None:
    assert list(PATHS.leaves) == [
        "species", "days", "bed.soil.name", "bed.soil.depth", "bed.soil.grain", "bed.width",
        "bed.shade", "water", "water.rate", "water.depth", "water.days", "visits",
    ]  # fmt: skip
    assert PATHS.groups == {"bed", "bed.soil"}
    assert PATHS.choices == {"water"}
    assert PATHS.required == ("species", "days")


def test_values_of_the_first_level_win_when_levels_are_merged() -> None:
    given = PATHS.merged([level(days=1), level(days=2, bed__width=3.0), level(bed__width=4.0)])
    assert given == {"days": 1, "bed.width": 3.0}


def test_a_whole_choice_drops_its_fields_from_lower_levels() -> None:
    low = level(water=Flood(depth=2.0), water__days=3)
    assert PATHS.merged([level(water="dry"), low]) == {"water": "dry"}
    assert PATHS.merged([level(water__days=2), low])["water"] == Flood(depth=2.0)
    same = {"water": Flood(depth=2.0), "water.days": 3}
    assert PATHS.merged([level(days=1), low]) == {"days": 1, **same}


def test_a_choice_given_by_name_keeps_its_fields_from_lower_levels() -> None:
    given = PATHS.merged([level(bed__soil__name="sand"), level(bed__soil__depth=5)])
    tree, gone, errors = PATHS.join(BLANK | given)
    assert (tree.bed, gone, errors) == (Bed(soil=Sand(depth=5)), frozenset(), [])


def test_joined_values_build_the_configuration_tree() -> None:
    tree, gone, errors = PATHS.join({**BLANK, "water": "drip", "water.rate": 2.0})
    assert tree == Plant(species="rose", days=4, water=Drip(rate=2.0))
    assert not gone
    assert not errors


def test_one_broken_rule_does_not_hide_another() -> None:
    values = {"species": "rose", "days": 0, "water": "flood", "water.depth": 1.0, "water.days": 0}
    tree, gone, errors = PATHS.join(values)
    assert tree is not None
    assert [error.fields for error in errors] == [("water.days",), ("days",)]
    assert gone == {"days", "water.days"}


def test_a_refused_or_missing_value_gets_a_default_without_another_error() -> None:
    tree, gone, errors = PATHS.join({"days": REFUSED, "water.rate": 1.0, "water": REFUSED})
    assert tree is not None
    assert not errors
    assert gone == {"days", "species", "water"}


def test_an_error_is_reported_at_the_value_of_the_most_specific_level() -> None:
    error = RuleError("rule", {"water.rate": 1, "days": 2})
    low, high = level(water=Drip(rate=1.0)), level(days=2)
    assert blamed(error, [high, low]) == high["days"]
    assert blamed(error, [low, high]) == low["water"]
    whole = RuleError("rule", {"water": 1})
    assert blamed(whole, [level(water__rate=1.0)]) is not None
    assert blamed(RuleError("rule", {"watering": 1}), [low, high]) is None


@pytest.mark.parametrize("name", PROBLEMS)
def test_fields_with_the_same_name_in_a_choice_have_the_same_type(name: str) -> None:
    """A path is read before the kind of its choice is known."""
    for kind in _kinds(problem_named(name).config):
        for part in parts(kind):
            types: dict[str, Any] = {}
            for option in part.options.values():
                for field in parts(option):
                    kinds = set(map(unmarked, members(field.hint)))
                    assert types.setdefault(field.name, kinds) == kinds


def _kinds(kind: Any) -> Iterator[Any]:
    yield kind
    for part in parts(kind):
        for below in (*part.options.values(), *([part.hint] if part.is_group else [])):
            yield from _kinds(below)
