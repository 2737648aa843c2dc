"""JSON records: files read as dataclasses, with types, ranges, lengths and characters checked.

Every file that another user, version or program may have written is read by `record_of`: stages,
failures, launches, leases, archives, reports. What a field accepts follows from its type: whole
numbers of 64 bits, finite numbers, printable text of bounded length; `Time`, `Seconds`, `Natural`,
`Fraction`, `Lines` and `AnyText` are narrower or wider.
"""

import json
import logging
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from mixup_core.records import Packed
from mixup_core.rules import escaped, printable, shown
from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import read_regular

LARGEST = 2**26
"""Size limit of files that are read whole, in bytes; the provenance of 10,000 runs needs a tenth.
"""
LATEST_MS = 250_000_000_000_000
"""Latest accepted Unix time in ms, in the year 9892: a later one may be beyond year 9999 in local
time, which no calendar formats."""
MOST_SECONDS = 1e9
"""Longest accepted duration in seconds, 31 years; sums of the largest numbers are infinite."""
_LONGEST = 2**20
"""Largest number of characters of a text."""

_logger = logging.getLogger(__name__)

_Kind = TypeVar("_Kind")
_Read = Callable[[Any], Any]


class RecordError(ValueError):
    """Error: a file is not the record that it should be. The message names the field and value."""

    def __init__(self, rule: str, place: str = "") -> None:
        self.rule, self.place = rule, place
        super().__init__(f"{place}: {rule}" if place else rule)

    def within(self, place: str) -> "RecordError":
        """Return this error for a part of a larger record, as `place.field`."""
        dot = "." if self.place and not self.place.startswith("[") else ""
        return RecordError(self.rule, f"{place}{dot}{self.place}")


def read_note(path: Path) -> dict[str, Any] | None:
    """Return the mapping in a local JSON file; None if the file is missing or malformed."""
    try:
        return parse_note(read_regular(path, LARGEST))
    except (FileNotFoundError, NotADirectoryError, UnreadableError):
        return None


def parse_note(content: bytes | UnreadableError) -> dict[str, Any] | None:
    """Return the mapping in a JSON text; None if it is malformed, no mapping or no Unicode."""
    if isinstance(content, UnreadableError):
        return None
    try:
        note = json.loads(content)
        if b"\\u" in content:  # half of a surrogate pair, which cannot be encoded
            json.dumps(note, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) else None


def record_in_note(
    kind: type[_Kind], name: str | Path, content: bytes | UnreadableError
) -> _Kind | None:
    """Return the record in a JSON file; None if it is invalid, which the log says once."""
    note = parse_note(content)
    try:
        if note is None:
            raise RecordError("is not a JSON mapping")  # noqa: TRY301  as an invalid field
        return record_of(kind, note)
    except RecordError as error:
        name_once(str(name), str(error))
        return None


@lru_cache(maxsize=1000)
def name_once(name: str, fault: str) -> None:
    """Log that a file is not the record that it should be and is ignored; once for each fault."""
    _logger.warning("%s: %s; the file is ignored", name, fault)


def filled(kind: type[_Kind], plain: object) -> _Kind | None:
    """Build a dataclass from parsed JSON by `record_of`; None if the JSON is no such record."""
    try:
        return record_of(kind, plain)
    except RecordError:
        return None


def record_of(kind: type[_Kind], plain: object) -> _Kind:
    """Build a dataclass from parsed JSON, every value of which is checked.

    Fields of later versions are ignored. A missing field takes its default, or None. Lists become
    tuples.
    """
    read: Any = _reader
    found: _Kind = read(kind)(plain)
    return found


def _refused(rule: str, value: Any) -> RecordError:
    return RecordError(f"must be {rule}, got {printable(shown(value))}")


def _where(rule: str, holds: Callable[[Any], bool]) -> _Read:
    """Return the reader of values for which a function returns True; `rule` describes them."""

    def read(value: Any) -> Any:
        if holds(value):
            return value
        raise _refused(rule, value)

    return read


def _integer(low: int, high: int, rule: str) -> _Read:
    return _where(rule, lambda value: type(value) is int and low <= value <= high)


def _is_number(value: Any) -> bool:
    is_short = type(value) is int and -(2**63) < value < 2**63
    return is_short or (type(value) is float and math.isfinite(value))


def _number(low: float, high: float, rule: str) -> _Read:
    return _where(rule, lambda value: _is_number(value) and low <= value <= high)


_any_text = _where(
    f"text of at most {_LONGEST:,} characters",
    lambda value: isinstance(value, str) and len(value) <= _LONGEST,
)


def _line(value: Any) -> str:
    return printable(_any_text(value))


def _lines(value: Any) -> str:
    return "\n".join(map(escaped, _any_text(value).splitlines()))


def matching(pattern: str, rule: str) -> _Read:
    """Return the reader of a field, for `Annotated`: text that a regular expression matches."""
    whole = re.compile(pattern).fullmatch
    return _where(
        rule, lambda value: isinstance(value, str) and bool(whole(value)) and value.isprintable()
    )


Time = Annotated[int, _integer(0, LATEST_MS, "a Unix time in ms of the years 1970 to 9892")]
"""Type of a field: a Unix time in milliseconds."""
Seconds = Annotated[float, _number(0, MOST_SECONDS, "seconds from 0 to 10^9")]
"""Type of a field: a duration in seconds."""
Fraction = Annotated[float, _number(0, 1, "a number from 0 to 1")]
"""Type of a field: a fraction."""
Natural = Annotated[int, _integer(0, 2**63 - 1, "a whole number from 0 to 2^63 - 1")]
"""Type of a field: a whole number that is not negative."""
Ordinal = Annotated[int, _integer(1, 2**63 - 1, "a whole number from 1 to 2^63 - 1")]
"""Type of a field: a whole number above 0."""
Line = Annotated[str, _line]
"""Type of a field: a text of one line; control characters are escaped when it is read."""
Lines = Annotated[str, _lines]
"""Type of a field: text of several lines; other control characters are escaped when it is read."""
Key = Annotated[str, matching("[0-9a-f]{4,64}", "4 to 64 hexadecimal digits")]
"""Type of a field: a run key, a stage key, or another hash of at most 64 hexadecimal digits."""
Sha256 = Annotated[str, matching("[0-9a-f]{64}", "64 hexadecimal digits")]
"""Type of a field: a sha256 in hexadecimal digits."""
AnyText = Annotated[str, _any_text]
"""Type of a field: text with any characters, such as names of files; not to be printed as it is."""

_PLAIN: Mapping[Any, _Read] = {
    Any: lambda value: value,
    int: _integer(-(2**63), 2**63 - 1, "a whole number of 64 bits"),
    float: _where("a finite number", _is_number),
    bool: _where("true or false", lambda value: isinstance(value, bool)),
    str: _where("text of printable characters", lambda value: _any_text(value).isprintable()),
}


@lru_cache(maxsize=256)
def _reader(kind: Any) -> _Read:
    """Return the function that reads values of a type and raises `RecordError` for others."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        read: _Read = inner[1]
        return read
    if origin is Literal:
        return _one_of(inner)
    if origin is UnionType or type(None) in inner:
        return _union(inner)
    if origin is tuple:
        return _list(_reader(inner[0]))
    if origin is Mapping:
        return _mapping(*map(_reader, inner))
    if is_dataclass(kind):
        return _dataclass(kind)
    if isinstance(kind, type) and issubclass(kind, Packed):
        (of,) = get_args(kind.__orig_bases__[0])  # type: ignore[attr-defined]
        items = _list(_reader(of))
        packing: Any = kind
        return lambda value: packing(items(value))
    return _PLAIN[kind]


def _one_of(values: tuple[Any, ...]) -> _Read:
    return _where(
        f"one of {', '.join(map(repr, values))}",
        lambda value: any(type(value) is type(one) and value == one for one in values),
    )


def _union(kinds: tuple[Any, ...]) -> _Read:
    *others, last = (_reader(kind) for kind in kinds if kind is not NoneType)
    accepts_none = NoneType in kinds

    def read(value: Any) -> Any:
        if value is None and accepts_none:
            return None
        for one in others:
            with suppress(RecordError):
                return one(value)
        return last(value)

    return read


def _list(of: _Read) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _refused("a list", value)
        found: list[Any] = []
        try:
            for part in value:
                found.append(of(part))  # noqa: PERF401  its length is the place of an error
        except RecordError as error:
            raise error.within(f"[{len(found)}]") from None
        return tuple(found)

    return read


def _mapping(named: _Read, of: _Read) -> _Read:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refused("a mapping", value)
        found, name = {}, ""
        try:
            for name, part in value.items():
                found[named(name)] = of(part)
        except RecordError as error:
            raise error.within(printable(name)) from None
        return found

    return read


def _dataclass(kind: Any) -> _Read:
    hints = get_type_hints(kind, include_extras=True)
    reads = [
        (field.name, _reader(hints[field.name]), field.default is field.default_factory is MISSING)
        for field in fields(kind)
    ]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _refused("a mapping", value)
        found = {}
        for name, of, is_required in reads:
            if name in value or is_required:
                try:
                    found[name] = of(value.get(name))
                except RecordError as error:
                    raise error.within(name) from None
        return kind(**found)

    return read
