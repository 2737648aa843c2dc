"""Strict YAML: parse a document with line numbers; reject ambiguous notations such as `no`."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import yaml

from mixup_core.rules import printable, shown

MAX_BYTES = 1_000_000
MAX_DEPTH = 32

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML parser. The one of libyaml reads 1 MB in half a second; pure PyYAML takes many seconds, but
some builds of PyYAML lack libyaml."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """File and line of a value in a study file, for messages."""

    source: str
    """File name, or the `--set PATH=VALUE` option that gave the value."""
    line: int | None = None
    """Line number from 1; None if the source has no lines."""

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """One fault found in a study file: where it is, and the message for the user."""

    place: Place
    path: str
    """Dotted path inside the file; empty for a fault of the whole file."""
    text: str
    """Text of the message: the broken rule and the value."""
    whole: str = ""
    """The text with all accepted values, if `text` names only some of them."""

    def __str__(self) -> str:
        return self.spelled(self.text)

    def spelled(self, text: str) -> str:
        parts = (str(self.place), self.path, text)
        return ": ".join(printable(part) for part in parts if part)


At = tuple[str | int, ...]
"""Path of a value inside a document: the keys of mappings and indices of lists that lead to it,
outermost first."""


def dotted(at: At) -> str:
    """Return `arms.a.mix.law` or `seeds[0]`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in at)
    return "".join(parts).lstrip(".")


class Refused:
    """Stands for an invalid value whose fault was reported, so that it is reported only once."""


REFUSED: Final = Refused()


def holds_refused(value: Any) -> bool:
    """Return True if a value is, or contains at any depth, the mark `REFUSED` of invalid values."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is REFUSED or any(map(holds_refused, inside))


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One YAML document: its content, the place of each value, and the faults found so far."""

    value: Any
    """The parsed content: mappings, lists and scalars. Each rejected value is replaced by
    `REFUSED`, and so is the whole document if it is not YAML."""
    places: dict[At, Place]
    """Place in the file of each value, by path; the place of a mapping's value is that of its
    key.
    """
    faults: list[Mistake]

    def report(self, at: At, text: str, whole: str = "") -> None:
        """Add a fault at the line of its value or parent; `whole` has all accepted values."""
        written = at
        while written not in self.places:
            written = written[:-1]
        place = self.places[written]
        self.faults.append(Mistake(place=place, path=dotted(at), text=text, whole=whole))


def read_yaml(content: bytes, place_at: Callable[[int], Place], at: At = ()) -> Document:
    """Parse one YAML document; each notation that this project rejects becomes a fault.

    Accepted are mappings with text keys, mappings from numbers to numbers (their keys are returned
    as text, as written), lists, text, decimal numbers (including `1e-3`), `true`, `false` and null.
    YAML's other spellings of booleans and numbers, dates, tags, anchors, aliases, merge keys and
    repeated keys are rejected. Only plain Python values are constructed.
    """
    reader = _Reader(place_at)
    try:
        value = reader.document(_decoded(content), at)
        reader.faults.sort(key=lambda fault: fault.place.line or 0)
        return Document(value=value, places=reader.places, faults=reader.faults)
    except _NoYamlError as error:
        line, text = error.args
    except yaml.MarkedYAMLError as error:
        line, text = _syntax_problem(error, content)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Some escapes (\UFFFFFFFF) and version numbers raise these errors inside PyYAML.
        line, text = 1, f"not valid YAML: {error}"
    reader.refuse(line, at, text)
    return Document(value=REFUSED, places={at: place_at(line)}, faults=reader.faults)


def read_value(text: str, place: Place, at: At) -> Document:
    """Parse a value that is given outside a file, such as that of a `--set` option.

    Lists, mappings and quoted texts are YAML. Every other value is taken whole: YAML would remove a
    comment (`photos #2`), a line break and `---` without a message.
    """
    content = text.encode("utf-8", "surrogatepass")
    document = read_yaml(content, lambda _: place, at)
    if document.faults:
        return document
    text = _decoded(content)
    tokens = list(yaml.scan(text, Loader=_LOADER))
    scalars = [token for token in tokens if isinstance(token, yaml.ScalarToken)]
    whole = text.strip()
    if not isinstance(document.value, dict | list) and all(
        token.plain or token.style in {"|", ">"} for token in scalars
    ):
        if [token.value for token in scalars] == [whole]:
            return document
        return replace(document, value=whole or None)
    if any("#" in text[a.end_mark.index : b.start_mark.index] for a, b in pairwise(tokens)):
        document.report(at, "comments are not allowed in a value; quote a text that contains #")
        return replace(document, value=REFUSED)
    return document


def write_yaml(document: Any) -> str:
    """Return plain data as YAML that `read_yaml` can read; equal data give equal text."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _NoYamlError(Exception):
    """The document cannot be parsed. The arguments are the line number and the message."""


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise _NoYamlError(1, f"larger than {MAX_BYTES // 1_000_000} MB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _NoYamlError(line, "not UTF-8 text") from error
    unprintable = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if unprintable is not None:
        line = text[: unprintable.start()].count("\n") + 1
        raise _NoYamlError(line, f"control characters are not allowed, got {unprintable[0]!r}")
    return text


def _syntax_problem(error: yaml.MarkedYAMLError, content: bytes) -> tuple[int, str]:
    assert error.problem_mark is not None
    line, column = error.problem_mark.line + 1, error.problem_mark.column + 1
    for text in content.decode("utf-8-sig").split("\n")[line - 1 : line]:
        if text.lstrip(" ").startswith("\t"):
            place = text.index("\t") + 1
            return line, f"tabs cannot indent (column {place})"
    description = ", ".join(part for part in (error.context, error.problem) if part)
    return line, f"not valid YAML: {description} (column {column})"


class _Reader:
    """Builds a `Document` from parser events.

    Aliases are never expanded, so a document that nests aliases ("alias bomb") uses little memory.
    """

    def __init__(self, place_at: Callable[[int], Place]) -> None:
        self.faults: list[Mistake] = []
        self.places: dict[At, Place] = {}
        self._place_at = place_at

    def refuse(self, line: int, at: At, text: str) -> Refused:
        self.faults.append(Mistake(place=self._place_at(line), path=dotted(at), text=text))
        return REFUSED

    def document(self, text: str, at: At) -> Any:
        self._events = iter(yaml.parse(text, Loader=_LOADER))
        values: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if values:
                    raise _NoYamlError(_line(event), "expected one document, got a second")
                values.append(self._value(next(self._events), at, 1))
        self.places.setdefault(at, self._place_at(1))
        return values.pop() if values else None

    def _value(self, event: yaml.Event, at: At, depth: int) -> Any:
        line = _line(event)
        self.places.setdefault(at, self._place_at(line))
        if depth > MAX_DEPTH:
            raise _NoYamlError(line, f"nested deeper than {MAX_DEPTH} levels")
        match event:
            case yaml.MappingStartEvent():
                value: Any = self._mapping(at, depth)
            case yaml.SequenceStartEvent():
                value = self._sequence(at, depth)
            case yaml.ScalarEvent():
                value = self._scalar(event, at)
            case _:
                assert isinstance(event, yaml.AliasEvent)
                return self.refuse(line, at, f"aliases are not allowed, got *{event.anchor}")
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            value = self.refuse(line, at, f"tags are not allowed, got {tag}")
        if event.anchor is not None:
            value = self.refuse(line, at, f"anchors are not allowed, got &{event.anchor}")
        return value

    def _mapping(self, at: At, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        numbers: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._key(event, at, depth)
            if isinstance(key, str) and _is_number(event):
                numbers.setdefault(key, line)
            inside = at if key is None else (*at, key)
            self.places.setdefault(inside, self._place_at(line))
            value = self._value(next(self._events), inside, depth + 1)
            if key in values:
                self.refuse(line, at, f"key {key!r} appears twice (lines {lines[key]} and {line})")
            elif key is not None:
                values[key], lines[key] = value, line
        if numbers.keys() != values.keys() or not all(
            isinstance(value, int | float) and not isinstance(value, bool)
            for value in values.values()
        ):
            for number, line in numbers.items():
                self.refuse(line, at, f"keys must be text, got {number}; quote it")
                del values[number]
        return values

    def _key(self, event: yaml.Event, at: At, depth: int) -> str | None:
        line = _line(event)
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            self.refuse(line, at, "merge keys are not allowed, got <<")
            return None
        key = self._value(event, at, depth + 1)
        if isinstance(key, str):
            return key
        if key is REFUSED:
            return None
        if _is_number(event):
            assert isinstance(event, yaml.ScalarEvent)
            return str(event.value)
        is_scalar = not isinstance(key, dict | list)
        got = f"{shown(key)}; quote it" if is_scalar else "a collection"
        self.refuse(line, at, f"keys must be text, got {got}")
        return None

    def _sequence(self, at: At, depth: int) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, (*at, len(values)), depth + 1))
        return values

    def _scalar(self, event: yaml.ScalarEvent, at: At) -> Any:
        text = event.value
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            text = f"half of a surrogate pair is not a character, got {text!r}"
            return self.refuse(_line(event), at, text)
        try:
            return _resolved(text) if event.implicit[0] else text
        except ValueError as error:
            return self.refuse(_line(event), at, str(error))


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None
    return int(event.start_mark.line) + 1


def _is_number(event: yaml.Event) -> bool:
    """Return True if a parser event is a number without quotes."""
    if not isinstance(event, yaml.ScalarEvent) or not event.implicit[0] or event.tag is not None:
        return False
    return _NUMBER.fullmatch(event.value) is not None


_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")

_PLAIN_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_KINDS = {
    "bool": "a boolean",
    "int": "a non-decimal number",
    "float": "a non-decimal number",
    "timestamp": "a date",
    "null": "a spelling of null",
}
_RESOLVER = yaml.resolver.Resolver()


def _resolved(text: str) -> str | int | float | bool | None:
    """Return the value of a scalar without quotes, if all versions of YAML read the same value."""
    if text in _PLAIN_WORDS:
        return _PLAIN_WORDS[text]
    if _NUMBER.fullmatch(text):
        if not math.isfinite(float(text)):
            raise ValueError(f"must be a finite number, got {text}")
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    kind = tag.removeprefix("tag:yaml.org,2002:")
    if kind == "float" and text.lower().lstrip("+-") in {".inf", ".nan"}:
        raise ValueError(f"must be a finite number, got {text}")
    if kind == "bool":
        meaning = "true" if text.lower() in {"yes", "on", "true"} else "false"
        raise ValueError(
            f"YAML reads {text} as the boolean {meaning}; quote a name as {text!r}, "
            f"or write a boolean as {meaning}"
        )
    if kind in _KINDS:
        raise ValueError(f"expected a name or a decimal number, got {_KINDS[kind]}; quote {text!r}")
    return text


class _Dumper(yaml.SafeDumper):
    """YAML writer that quotes text like `1e-3`, which `read_yaml` would read as a number.

    It writes an object that occurs several times in full each time, because `read_yaml` refuses
    anchors.
    """

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Outside double quotes PyYAML writes these three as line breaks, and reads them as spaces.
    style = '"' if re.search("[\x85\u2028\u2029]", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
