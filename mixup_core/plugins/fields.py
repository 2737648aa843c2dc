"""Fields: checks that a study file can set every field of a plugin's dataclasses."""

import inspect
import math
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from mixup_core.config.building import parsed
from mixup_core.config.catalogue import Register, kind_name
from mixup_core.config.limits import Range
from mixup_core.config.parts import REQUIRED, leaves, limits, members, parts, unmarked
from mixup_core.config.written_forms import SpellingError, expected
from mixup_core.rules import RuleError


class UnreadableFieldError(Exception):
    """Error: a study file cannot set a field of a plugin's class."""


def check_fields(entries: Iterable[tuple[Register[Any], Any]]) -> None:
    """Check that a study file can set every field of the classes that a plugin adds."""
    for register, kind in entries:
        if isinstance(kind, type):
            noun = f"the {register.noun} {kind_name(kind)}"
            _require_types(kind, noun)
            _require_defaults(kind, noun)


def _require_types(kind: Any, noun: str) -> None:
    for holder in (kind, *_dataclasses_in(kind)):
        if untyped := _untyped(holder):
            raise UnreadableFieldError(
                f"{', '.join(untyped)} of {holder.__name__} ({noun}) has no type, so that no study "
                f"can set it; write `{untyped[0]}: int = ...`, or `{untyped[0]}: ClassVar = ...` "
                "for a constant"
            )
    for field, hint in _hints(kind):
        if why := _ambiguous(hint):
            raise UnreadableFieldError(f"the field {field} of {noun} {why}")
    for part in parts(kind):
        try:
            expected(part.hint)
        except Exception as error:
            raise UnreadableFieldError(
                f"the field {part.name} of {noun} has the type {part.hint}, which a study file "
                "cannot express; use numbers, text, true or false, tuples, dataclasses and "
                "limits such as Range"
            ) from error


def _require_defaults(kind: Any, noun: str) -> None:
    for part in parts(kind):
        try:
            if part.default is not REQUIRED:
                parsed(part.hint, part.default)
        except (SpellingError, RuleError) as error:
            raise UnreadableFieldError(
                f"the default of `{part.name}` of {noun} is not valid: {error}"
            ) from error


_LARGE = {int: 64, float: 1000.0}
"""Value that is tried for a field without an upper bound."""


def extremes(kind: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield (path, value, is bound) for the ends, or large values, of each field of numbers."""
    for path, leaf in leaves(kind).items():
        for value, is_bound in _ends(leaf.part.hint):
            yield path, value, is_bound


def _ends(hint: Any) -> Iterator[tuple[Any, bool]]:
    for member in members(hint):
        kind, marks = unmarked(member), limits(member)
        if get_origin(kind) is tuple:
            yield from (([value], is_bound) for value, is_bound in _ends(get_args(kind)[0]))
        for limit in marks if kind in _LARGE else ():
            for value, is_bound in _ends_of(limit, kind) if isinstance(limit, Range) else ():
                if all(mark.holds(value) for mark in marks):
                    yield value, is_bound


def _ends_of(limit: Range, kind: type) -> Iterator[tuple[Any, bool]]:
    low, high, ends = limit.low, limit.high, limit.ends
    step = 1 if kind is int else min(1.0, high - low) * 0.01
    if math.isfinite(low):
        yield kind(low if ends[0] == "[" else low + step), True
    if math.isfinite(high):
        yield kind(high if ends[1] == "]" else high - step), True
    else:
        yield _LARGE[kind], False


def _hints(kind: Any, *, bare: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield (field name, type) for each type that occurs in the annotations of a class."""
    for holder in (kind, *_dataclasses_in(kind)):
        for name, hint in get_type_hints(holder, include_extras=True).items():
            if get_origin(hint) is not ClassVar:
                yield from ((name, inner) for inner in _types_in(hint, bare=bare))


def unlimited(kind: Any) -> list[str]:
    """Return the fields of a dataclass, and of those inside it, that accept every number."""
    return sorted({name for name, hint in _hints(kind, bare=True) if hint in {int, float}})


def _ambiguous(hint: Any) -> str:
    """Return the reason why different values of a type could have equal keys; empty without one."""
    if get_origin(hint) is tuple and (len(get_args(hint)) != 2 or get_args(hint)[1] is not ...):
        return "is a tuple of fixed length; write a list, such as `tuple[int, ...]`"
    if get_origin(hint) is Literal:
        kinds, untagged = {type(value) for value in get_args(hint)}, 0
    else:
        held = [unmarked(member) for member in members(hint)]
        kinds = set(held)
        untagged = sum(is_dataclass(member) and not kind_name(member) for member in held)
    if len(kinds & {bool, int, float}) > 1:
        return (
            "accepts numbers of two types, or numbers and true or false, so that equal values "
            "would have the same key: keep one type (a whole number may be given for a float)"
        )
    return "accepts two dataclasses without a `tag`; give each a `tag`" if untagged > 1 else ""


def _dataclasses_in(kind: Any, seen: frozenset[Any] = frozenset()) -> Iterator[Any]:
    """Yield the dataclasses of the same module that occur in the fields of a dataclass."""
    for hint in get_type_hints(kind, include_extras=True).values():
        for inner in _types_in(hint):
            is_own = getattr(inner, "__module__", None) == kind.__module__
            if is_own and is_dataclass(inner) and inner not in seen:
                yield inner
                yield from _dataclasses_in(inner, seen | {inner})


def _types_in(hint: Any, *, bare: bool = False) -> Iterator[Any]:
    yield hint
    for argument in () if bare and limits(hint) else get_args(hint):
        yield from _types_in(argument, bare=bare)


def _untyped(kind: Any) -> list[str]:
    """Return class attributes that have a value but no type: probably fields without annotation."""
    bases = inspect.getmro(kind)
    known = {"tag", "name", *(name for base in bases for name in inspect.get_annotations(base))}
    known |= {name for base in bases[1:] for name in vars(base)}
    return [
        name
        for name, value in vars(kind).items()
        if name not in known
        and not name.startswith("_")
        and not name.isupper()
        and not callable(value)
        and not hasattr(value, "__get__")
    ]
