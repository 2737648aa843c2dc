"""Strict YAML: one document as a tree that knows its lines, with every ambiguous form refused."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from mixup_core.rules import printable, shown

MAX_BYTES = 1_000_000
MAX_DEPTH = 32

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml reads 1 MB in half a second where PyYAML alone takes many; not every build has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where something was written."""

    source: str
    """A file name, or the `--set PATH=VALUE` that gave it."""
    line: int | None = None
    """1-based; None where lines mean nothing."""

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is wrong with a file."""

    place: Place
    path: str
    """Dotted path inside the file; empty for the file as a whole."""
    text: str
    """The rule and the value."""

    def __str__(self) -> str:
        parts = (str(self.place), self.path, self.text)
        return ": ".join(printable(part) for part in parts if part)


class Refused:
    """Stands for a value that was reported already: nothing more is said of it."""


REFUSED: Final = Refused()


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A value and where it was written; for the value of a key, where the key was."""

    value: "dict[str, Node] | list[Node] | str | int | float | bool | Refused | None"
    place: Place
    path: str = ""
    """Dotted path inside the file; empty for the file as a whole."""


def plain(node: Node) -> Any:
    """Return the value without its places: mappings, lists and scalars, `REFUSED` where it was."""
    match node.value:
        case dict():
            return {key: plain(child) for key, child in node.value.items()}
        case list():
            return [plain(child) for child in node.value]
        case scalar:
            return scalar


def holds_refused(node: Node) -> bool:
    """Return whether the value, or any value inside it, was refused."""
    match node.value:
        case dict():
            return any(holds_refused(child) for child in node.value.values())
        case list():
            return any(holds_refused(child) for child in node.value)
        case scalar:
            return scalar is REFUSED


def read_yaml(
    content: bytes, place_at: Callable[[int], Place], path: str = ""
) -> tuple[Node, list[Fault]]:
    """Return one YAML document as a tree of nodes, and everything refused in it.

    Accepted are mappings with text keys, lists, text, decimal numbers (`1e-3` is one), `true`,
    `false` and null. YAML's other spellings of booleans and numbers, dates, tags, anchors, aliases,
    merge keys and repeated keys are refused. Nothing is constructed but plain values.

    Args:
        content: UTF-8; a byte order mark is accepted.
        place_at: 1-based line to the place that faults name.
        path: Dotted path of the document, where it is part of another.

    Returns:
        The tree, `REFUSED` where a value was refused (the whole tree if it is no YAML at all), and
        the faults in the order of the lines.
    """
    reader = _Reader(place_at, path)
    try:
        root = reader.document(_decoded(content))
    except _NoYamlError as error:
        reader.refuse(error.line, path, error.text)
        root = Node(value=REFUSED, place=place_at(error.line), path=path)
    except yaml.MarkedYAMLError as error:
        line, fault = _syntax_problem(error, content)
        reader.refuse(line, path, fault)
        root = Node(value=REFUSED, place=place_at(line), path=path)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML lets some escapes (\UFFFFFFFF) and version numbers fail in int() and chr().
        reader.refuse(1, path, f"not valid YAML: {error}")
        root = Node(value=REFUSED, place=place_at(1), path=path)
    return root, reader.faults


def write_yaml(document: Any) -> str:
    """Return plain data as YAML text that `read_yaml` reads back, the same for the same data."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _NoYamlError(Exception):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise _NoYamlError(1, f"larger than {MAX_BYTES // 1_000_000} MB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _NoYamlError(line, "not UTF-8 text") from error
    unprintable = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if unprintable is not None:
        line = text.count("\n", 0, unprintable.start()) + 1
        raise _NoYamlError(line, f"control characters are not allowed, got {unprintable[0]!r}")
    return text


def _syntax_problem(error: yaml.MarkedYAMLError, content: bytes) -> tuple[int, str]:
    mark = error.problem_mark or error.context_mark
    line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
    around = content.decode("utf-8-sig").split("\n")[line - 1 : line]
    if any(text[: column + 1].lstrip(" ").startswith("\t") for text in around):
        return line, f"tabs cannot indent (column {column})"
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return line, f"not valid YAML: {what} (column {column})"


class _Reader:
    """Composes nodes from parser events: aliases are never followed, so a bomb stays small."""

    def __init__(self, place_at: Callable[[int], Place], path: str) -> None:
        self.faults: list[Fault] = []
        self._place_at = place_at
        self._path = path

    def refuse(self, line: int, path: str, text: str) -> None:
        self.faults.append(Fault(place=self._place_at(line), path=path, text=text))

    def document(self, text: str) -> Node:
        events = iter(yaml.parse(text, Loader=_LOADER))
        root = None
        for event in events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if root is not None:
                raise _NoYamlError(_line(event), "expected one document")
            root = self._node(next(events), events, self._path, 1)
        return root or Node(value=None, place=self._place_at(1), path=self._path)

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], path: str, depth: int) -> Node:
        line = _line(event)
        if depth > MAX_DEPTH:
            raise _NoYamlError(line, f"nested deeper than {MAX_DEPTH}")
        value: Any
        match event:
            case yaml.MappingStartEvent():
                value = self._mapping(events, path, depth)
            case yaml.SequenceStartEvent():
                value = self._sequence(events, path, depth)
            case yaml.ScalarEvent():
                value = self._scalar(event, path)
            case _:
                assert isinstance(event, yaml.AliasEvent)
                self.refuse(line, path, f"aliases are not allowed, got *{event.anchor}")
                return Node(value=REFUSED, place=self._place_at(line), path=path)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.refuse(line, path, f"tags are not allowed, got {tag}")
            value = REFUSED
        if event.anchor is not None:
            self.refuse(line, path, f"anchors are not allowed, got &{event.anchor}")
            value = REFUSED
        return Node(value=value, place=self._place_at(line), path=path)

    def _mapping(self, events: Iterator[yaml.Event], path: str, depth: int) -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._key(event, events, path, depth)
            child_path = path if key is None else f"{path}.{key}".lstrip(".")
            child = self._node(next(events), events, child_path, depth + 1)
            if key is None:
                continue
            if key in nodes:
                text = f"key {key!r} appears twice (lines {lines[key]} and {line})"
                self.refuse(line, path, text)
                continue
            nodes[key] = Node(value=child.value, place=self._place_at(line), path=child_path)
            lines[key] = line
        return nodes

    def _key(
        self, event: yaml.Event, events: Iterator[yaml.Event], path: str, depth: int
    ) -> str | None:
        line = _line(event)
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            self.refuse(line, path, "merge keys are not allowed, got <<")
            return None
        key = self._node(event, events, path, depth + 1).value
        if isinstance(key, str):
            return key
        if not isinstance(key, Refused):
            hint = "" if isinstance(key, dict | list) else "; quote it"
            got = "a collection" if isinstance(key, dict | list) else shown(key)
            self.refuse(line, path, f"keys must be text, got {got}{hint}")
        return None

    def _sequence(self, events: Iterator[yaml.Event], path: str, depth: int) -> list[Node]:
        nodes: list[Node] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            nodes.append(self._node(event, events, f"{path}[{len(nodes)}]", depth + 1))
        return nodes

    def _scalar(self, event: yaml.ScalarEvent, path: str) -> Any:
        text = event.value
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self.refuse(_line(event), path, f"half a surrogate pair is no text, got {text!r}")
            return REFUSED
        if not event.implicit[0]:
            return text
        try:
            return _resolved(text)
        except ValueError as error:
            self.refuse(_line(event), path, str(error))
            return REFUSED


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None
    return int(event.start_mark.line) + 1


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
    """Return what an unquoted scalar means, if all YAML readers would agree or JSON decides.

    Raises:
        ValueError: If readers of YAML differ over it, or it is an infinite number or none.
    """
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
            f"expected a name, got the boolean {meaning}; quote {text!r} or write {meaning}"
        )
    if kind in _KINDS:
        raise ValueError(f"expected a name or a decimal number, got {_KINDS[kind]}; quote {text!r}")
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes text like `1e-3`, which is no number to YAML 1.1 but one to `read_yaml`."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Outside double quotes PyYAML writes these three as line breaks and reads spaces back.
    style = '"' if re.search("[\x85\u2028\u2029]", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
