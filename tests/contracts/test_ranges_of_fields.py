"""Ranges: every dataclass that a study file can create enforces the ranges of its field types."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest

from mixup_core.config.building import built
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Range
from mixup_core.config.parts import limits, members, parts, unmarked
from mixup_core.problem import PROBLEMS, problem_named
from mixup_core.rules import RuleError
from sweeps.reading.study_keys import EntryKeys, SearchKeys, StudyKeys
from sweeps.reading.tree_paths import stand_ins
from sweeps.study.budget import Budget
from sweeps.study.claims import Claim
from sweeps.study.space import Categorical, Integer, Real


def _reached(hint: Any) -> Iterator[Any]:
    """Yield the dataclasses that a value of a type may contain, the type itself first."""
    for member in map(unmarked, members(hint)):
        if get_origin(member) is tuple:
            yield from _reached(get_args(member)[0])
        elif dataclasses.is_dataclass(member):
            yield member
            for part in parts(member):
                yield from _reached(part.hint)


CONFIGS = [problem_named(name).config for name in PROBLEMS]
SECTIONS = [StudyKeys, SearchKeys, EntryKeys, Claim, Budget, Real, Integer, Categorical]
KINDS = list(dict.fromkeys(kind for hint in (*CONFIGS, *SECTIONS) for kind in _reached(hint)))
RANGED = [
    pytest.param(kind, part.name, limit, id=f"{kind.__name__}.{part.name}")
    for kind in KINDS
    for part in parts(kind)
    for member in members(part.hint)
    for limit in limits(member)
    if isinstance(limit, Range)
]


def test_every_class_with_limits_is_checked_and_defines_no_post_init() -> None:
    assert len(KINDS) > 60
    assert len(RANGED) > 100
    for kind in KINDS:
        is_limited = any(limits(member) for part in parts(kind) for member in members(part.hint))
        assert issubclass(kind, Checked) or not is_limited, kind
        assert "__post_init__" not in vars(kind), f"{kind} goes round its limits"


@pytest.mark.parametrize(("kind", "field", "limit"), RANGED)
def test_a_number_out_of_range_is_refused_with_its_field_and_rule(
    kind: Any, field: str, limit: Range
) -> None:
    near = (limit.low, limit.low - 1, limit.high, limit.high + 1)
    beyond = [number for number in near if not limit.holds(number)]
    assert beyond
    for number in beyond:
        with pytest.raises(RuleError) as caught:
            built(kind, stand_ins(kind) | {field: number})
        assert caught.value.fields == (field,)
        assert caught.value.rule == limit.rule(field)


UNBOUNDED = {(Budget, "hours"), (Budget, "gpu_hours")}
"""Fields for which infinity means that there is no limit."""


def _reals() -> Iterator[Any]:
    for kind in KINDS:
        for part in parts(kind):
            for member in members(part.hint):
                is_list = get_origin(unmarked(member)) is tuple
                for hint in members(get_args(unmarked(member))[0]) if is_list else [member]:
                    if unmarked(hint) is float and limits(hint):
                        yield kind, part.name, limits(hint)


def test_infinity_is_no_setting_except_where_it_means_no_limit() -> None:
    infinite = {
        (kind, name)
        for kind, name, of_field in _reals()
        if any(all(limit.holds(x) for limit in of_field) for x in (math.inf, -math.inf, math.nan))
    }
    assert infinite == UNBOUNDED
