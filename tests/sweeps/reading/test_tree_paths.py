from collections.abc import Iterator
from typing import Any

import pytest

from mixup_core.config.parts import members, parts, unmarked
from mixup_core.problem import PROBLEMS, problem_named


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
