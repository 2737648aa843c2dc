"""Limits: which values they let pass, and how messages and JSON Schema put them."""

import json
import math
from typing import Annotated, Any, get_args

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mixup_core.problem import MAX_SEED, Seed
from mixup_core.tree.limits import (
    Count,
    Distinct,
    Limit,
    Matching,
    NonNegative,
    PlainText,
    Positive,
    Range,
    Share,
    Whole,
    limits,
)
from mixup_core.tree.parts import Among

# A range, the rule for a field `x`, numbers that it holds, and others.
RANGES: dict[str, tuple[Range, str, tuple[float, ...], tuple[float, ...]]] = {
    "no end": (Range(1), "x >= 1", (1, 2, math.inf), (0, -1, math.nan)),
    "open, no end": (Range(0, math.inf, "(]"), "x > 0", (5e-324, math.inf), (0, -0.0, math.nan)),
    "closed": (Range(0, 1), "0 <= x <= 1", (0, 0.5, 1), (-0.1, 1.1, math.nan)),
    "open": (Range(0, 0.5, "()"), "0 < x < 0.5", (0.1,), (0, 0.5, math.nan)),
    "open below": (Range(0, 1000.0, "(]"), "0 < x <= 1000", (1e-9, 1000), (0, 1001)),
    "open above": (Range(0, 1, "[)"), "0 <= x < 1", (0, 0.999), (1, -1)),
    "finite": (Range(-math.inf, math.inf, "()"), "-inf < x < inf", (-1e308, 0),
               (math.inf, -math.inf)),
    "powers of ten": (Range(1e-6, 1e6), "1e-6 <= x <= 1e6", (1e-6, 1e6), (9e-7, 1.1e6)),
    "bits": (Range(0, 2**31 - 1), "0 <= x <= 2^31-1", (2**31 - 1,), (2**31,)),
    "few bits": (Range(0, 1023), "0 <= x <= 1023", (1023,), (1024,)),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_a_range_holds_what_its_rule_says(name: str) -> None:
    limit, rule, inside, outside = RANGES[name]
    assert limit.rule("x") == rule
    assert [limit.holds(value) for value in inside] == [True] * len(inside)
    assert [limit.holds(value) for value in outside] == [False] * len(outside)


@pytest.mark.parametrize("name", RANGES)
def test_json_schema_refuses_what_a_range_does_among_finite_numbers(name: str) -> None:
    limit, _, inside, outside = RANGES[name]
    json.dumps(limit.keywords, allow_nan=False)
    schema = jsonschema.Draft202012Validator({"type": "number", **limit.keywords})
    for value in filter(math.isfinite, (*inside, *outside)):
        assert schema.is_valid(value) == limit.holds(value)


@given(st.floats(allow_nan=True) | st.integers())
@example(0)
@example(1)
@example(MAX_SEED)
def test_the_named_ranges_are_what_they_are_called(value: float) -> None:
    named: dict[Any, bool] = {
        Count: value >= 1,
        Whole: value >= 0,
        Positive: 0 < value < math.inf,
        NonNegative: 0 <= value < math.inf,
        Share: 0 <= value <= 1,
        Seed: 0 <= value <= MAX_SEED,
    }
    for hint, is_held in named.items():
        (limit,) = limits(hint)
        assert limit.holds(value) == is_held


def test_a_distinct_list_has_no_item_twice_and_as_many_as_it_must() -> None:
    assert Distinct().holds(())
    assert Distinct(2).holds((1, 2))
    assert not any(Distinct(2).holds(items) for items in [(), (1,), (1, 1), (1, 2, 1)])
    assert Distinct().rule("seeds") == "seeds are distinct"
    assert Distinct(1).rule("seeds") == "seeds are at least 1 and distinct"
    schema = jsonschema.Draft202012Validator({"type": "array", **Distinct(2).keywords})
    assert [schema.is_valid(items) for items in ([1], [1, 1], [1, 2])] == [False, False, True]


def test_a_pattern_is_of_the_whole_text() -> None:
    limit = Matching("[a-z]+", "is a-z")
    assert limit.rule("name") == "name is a-z"
    assert [limit.holds(text) for text in ("ab", "", "a1", "a\n", "1a")] == [True] + [False] * 4
    schema = jsonschema.Draft202012Validator({"type": "string", **limit.keywords})
    assert [schema.is_valid(text) for text in ("ab", "", "a1", "1a")] == [True] + [False] * 3


def test_plain_text_may_have_lines_and_any_letter_that_leaves_others_as_they_are() -> None:
    (limit,) = limits(PlainText)
    assert all(map(limit.holds, ("", "two\n\tlines", "\xa0é\u2027\u202f\u200d\u65e5")))
    assert not any(map(limit.holds, "\0\r\x1b\x7f\x9f\u061c\u200e\u2028\u202e\u2069\ufeff"))


@pytest.mark.parametrize("limit", [Range(1), Distinct(), Matching("a", "is a"), Among(("a",))])
def test_limits_are_told_from_other_marks(limit: Limit) -> None:
    assert list(limits(Annotated[Any, "a remark", limit])) == [limit]
    assert limit.hint == ""
    assert list(limits(int)) == []
    assert len(get_args(Count)) == 2


def test_names_are_a_limit_too() -> None:
    limit = Among(("inn", "tent"))
    assert (limit.holds("inn"), limit.holds("hut")) == (True, False)
    assert limit.rule("place") == "place is one of inn, tent"
    assert limit.keywords == {"enum": ["inn", "tent"]}
