"""Limits: accepted values, and their text in messages and in the JSON Schema."""

import json
import math
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mixup_core.config.limits import (
    Among,
    Count,
    Distinct,
    Matching,
    NonNegative,
    PlainText,
    Positive,
    Range,
    Share,
    Whole,
)
from mixup_core.config.parts import limits
from mixup_core.problem import MAX_SEED, Seed

# A limit, the rule for a field `x`, values that it holds, and others.
LIMITS: dict[str, tuple[Any, str, Any, Any]] = {
    "no end": (Range(1), "x >= 1", (1, 2, math.inf), (0, -1, math.nan)),
    "open, no end": (Range(0, float("inf"), "(]"), "x > 0", (5e-324, math.inf), (-0.0, math.nan)),
    "closed": (Range(0, 1), "0 <= x <= 1", (0, 0.5, 1), (-0.1, 1.1, math.nan)),
    "open": (Range(0, 0.5, "()"), "0 < x < 0.5", (0.1,), (0, 0.5, math.nan)),
    "open below": (Range(0, 1000.0, "(]"), "0 < x <= 1000", (1e-9, 1000), (0, 1001)),
    "open above": (Range(0, 1, "[)"), "0 <= x < 1", (0, 0.999), (1, -1)),
    "finite": (Range(-math.inf, math.inf, "()"), "-inf < x < inf", (-1e308, 0),
               (math.inf, -math.inf)),
    "powers of ten": (Range(1e-6, 1e6), "1e-6 <= x <= 1e6", (1e-6, 1e6), (9e-7, 1.1e6)),
    "bits": (Range(0, 2**31 - 1), "0 <= x <= 2^31-1", (2**31 - 1,), (2**31,)),
    "one": (Range(1, 1), "x == 1", (1,), (0, 2)),
    "many digits": (Range(0.1234562, 0.1234567), "0.1234562 <= x <= 0.1234567", (0.1234564,),
                    (0.123456, 0.123457)),
    "few bits": (Range(0, 2**30 - 1), "0 <= x <= 1073741823", (1023,), (2**30,)),
    "distinct": (Distinct(), "items of x must be distinct", ([], [1, 2]), ([1, 2, 1],)),
    "some": (Distinct(may_be_empty=False),
             "items of x must be distinct, and there must be at least one", ([1], [1, 2]),
             ([], [1, 1])),
    "pattern": (Matching("[a-z]+|A", "be a-z"), "x must be a-z", ("ab", "A"),
                ("", "a1", "1a", "aA", "Aa")),
    "names": (Among(("inn", "tent")), "x must be one of inn, tent", ("inn",), ("hut",)),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_and_its_json_schema_accept_exactly_the_values_of_its_rule(name: str) -> None:
    limit, rule, inside, outside = LIMITS[name]
    assert limit.rule("x") == rule
    assert not isinstance(limit, Range) or limit.holds(limit.inside)
    keywords = json.loads(json.dumps(limit.keywords, allow_nan=False))
    schema = jsonschema.Draft202012Validator(keywords)
    for value, is_held in [*((v, True) for v in inside), *((v, False) for v in outside)]:
        assert limit.holds(value) == is_held
        is_json = not isinstance(value, float) or math.isfinite(value)
        assert schema.is_valid(value) == is_held or not is_json


@given(st.floats(allow_nan=True) | st.integers())
@example(0)
@example(1)
@example(1.5)
@example(MAX_SEED)
def test_named_ranges_accept_the_numbers_of_their_names(value: float) -> None:
    named: list[tuple[Any, bool]] = [
        (Count, value >= 1),
        (Whole, value >= 0),
        (Positive, 0 < value < math.inf),
        (NonNegative, 0 <= value < math.inf),
        (Share, 0 <= value <= 1),
        (Seed, 0 <= value <= MAX_SEED),
    ]
    for hint, is_held in named:
        (limit,) = limits(hint)
        assert limit.holds(value) == is_held


def test_a_pattern_refuses_a_final_line_break_and_a_registry_is_a_set_of_names() -> None:
    assert not Matching("[a-z]+", "be a-z").holds("a\n")
    assert isinstance(hash(Among({"inn": 1})), int)


def test_plain_text_accepts_lines_and_letters_and_refuses_control_characters() -> None:
    (limit,) = limits(PlainText)
    assert all(map(limit.holds, ("", "two\n\tlines", "\xa0é\u2027\u202f\u200d\u65e5")))
    assert not any(map(limit.holds, "\0\r\x1b\x7f\x9f\u061c\u200e\u2028\u202e\u2069\ufeff"))


@pytest.mark.parametrize(
    ("limit", "value"),
    [(Range(0), 1), (Range(2), 2), (Range(4, ends="(]"), 5), (Range(0, 0.5, "()"), 0.25),
     (Range(1, math.inf, "()"), 2), (Range(-math.inf, 0), 0), (Range(-math.inf, 0, "()"), -1)],
)  # fmt: skip
def test_every_range_contains_a_number(limit: Range, value: float) -> None:
    assert limit.inside == value
