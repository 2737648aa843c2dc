"""Possible values: example values of a type, written as in study files, for checks and tests."""

import dataclasses
from typing import Annotated, Any, Literal, get_args, get_origin

from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import REQUIRED, limits, members, parts, words

_PLAIN: dict[Any, list[Any]] = {
    type(None): [None],
    bool: [False, True],
    int: [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 64, 1000],
    float: [0.0, 0.125, 0.25, 0.3, 0.5, 0.9, 1.0, 2.0, 4.0, 16.0, 20.0, 1000.0],
    str: ["a", "b"],
}


def values(hint: Any) -> list[Any]:
    """Return example values of a type, as a study file would write them, within its limits."""
    origin, arguments = get_origin(hint), get_args(hint)
    if known := words(hint):
        return list(known)
    if origin is Annotated:
        marks = limits(hint)
        more = [mark.inside for mark in marks if hasattr(mark, "inside")]
        found = [*values(arguments[0]), *(int(v) if v == int(v) else v for v in more)]
        return [value for value in found if all(mark.holds(value) for mark in marks)]
    if origin is Literal:
        return list(arguments)
    if members(hint) != (hint,):
        return [value for member in members(hint) for value in values(member)]
    if origin is tuple:
        items = values(arguments[0])
        return [[], *([item] for item in items), items[:2], *([item, item] for item in items)]
    return spellings(hint) if dataclasses.is_dataclass(hint) else list(_PLAIN[hint])


def spellings(kind: Any) -> list[Any]:
    """Return examples of a dataclass, as a study file would write them.

    The first example sets only required fields; each further one changes the value of one of these.
    A dataclass whose required fields depend on each other provides a valid example in its class
    variable `example`.
    """
    fields = parts(kind)
    required = {p.name: values(p.hint) for p in fields if p.default is REQUIRED}
    first = {name: known[0] for name, known in required.items()}
    found = [first] + [first | {name: v} for name, known in required.items() for v in known[1:]]
    if example := getattr(kind, "example", None):
        found.append(dict(example))
    if hasattr(kind, "tag"):
        return [{kind.tag: given} if given else kind.tag for given in found]
    return [{"name": kind.name, **given} if kind_name(kind) else given for given in found]
