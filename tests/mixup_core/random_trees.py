"""Random configurations for hypothesis: values as study files write them, and whole trees."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from mixup_core.config.building import with_values
from mixup_core.config.catalogue import catalogue_of
from mixup_core.config.parts import leaves, limits, members, parts, words
from mixup_core.rules import RuleError


def spellings(hint: Any) -> st.SearchStrategy[Any]:
    """Draw a valid value of a type, as a study file would write it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if known := words(hint):
            return st.sampled_from(known)
        allowed = list(limits(hint))
        return spellings(arguments[0]).filter(lambda value: all(a.holds(value) for a in allowed))
    if origin in {Union, types.UnionType}:
        return st.one_of([spellings(member) for member in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(spellings(arguments[0]), max_size=3)
    if catalogue_of(hint) is not None:
        return st.one_of([spellings(member) for member in members(hint)])
    if dataclasses.is_dataclass(hint):
        return st.deferred(lambda: _dataclasses(hint))
    plain: Mapping[Any, st.SearchStrategy[Any]] = {
        type(None): st.none(),
        bool: st.booleans(),
        int: st.integers(0, 4),
        float: st.sampled_from([0.0, 0.125, 0.3, 0.5, 1.0, 2.0, 20.0]),
        str: st.sampled_from(["a", "b"]),
    }
    return plain[hint]


def _dataclasses(kind: Any) -> st.SearchStrategy[Any]:
    fields = st.fixed_dictionaries({part.name: spellings(part.hint) for part in parts(kind)})
    if isinstance(getattr(kind, "tag", None), str):
        return fields.map(lambda values: {kind.tag: values} if values else kind.tag)
    if isinstance(getattr(kind, "name", None), str):
        return fields.map(lambda values: {"name": kind.name, **values})
    return fields


@st.composite
def trees(draw: st.DrawFn, start: Any) -> Any:
    """Draw a configuration that differs from another one by some changes.

    Invalid changes are left out.
    """
    node = start
    known = leaves(type(start))
    for path in draw(st.lists(st.sampled_from(sorted(known)), max_size=12)):
        try:
            node = with_values(node, {path: draw(spellings(known[path].part.hint))})
        except RuleError:
            continue
    return node
