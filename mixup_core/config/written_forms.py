"""Written forms: the notation of configurations in study files, examples and errors of it.

A dataclass can have a short form, a notation without its own tag, as class variable `short`: the
law with the tag `beta-ab` is written `{beta: {a: 2, b: 5}}`. Keys are computed from the tag, and
values by dotted path use the tag.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, get_args, get_origin

from mixup_core.config.catalogue import Origin, kind_name, origin_of
from mixup_core.config.parts import REQUIRED, Part, limits, members, parts, unmarked, words
from mixup_core.rules import shown


def flatten(node: Any, *, brief: bool = False) -> dict[str, Any]:
    """Return the values of a configuration by dotted path, as study files write them."""
    return {path: value for path, value, _ in _walked(node, "", brief)}


def defaults(node: Any) -> dict[str, Any]:
    """Return the default of each field of a configuration by dotted path; `REQUIRED` if none.

    The paths and notations are those of `flatten(brief=True)`. The defaults below a choice are
    those of the chosen dataclass.
    """
    return {path: default for path, _, default in _walked(node, "", brief=True)}


def _walked(node: Any, prefix: str, brief: bool) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, value, default) for each value; for a choice, the tag or name is the value."""
    kind: Any = type(node)
    for part in parts(kind):
        value, default = getattr(node, part.name), part.default
        if not part.options and not part.is_group:
            usual = _field(part, default, brief)
            yield f"{prefix}{part.name}", _field(part, value, brief), usual
            continue
        if part.options:
            usual = default if default in {None, REQUIRED} else _name(type(default), brief)
            chosen = None if value is None else _name(type(value), brief)
            yield f"{prefix}{part.kind_path}", chosen, usual
        if value is not None:
            yield from _walked(value, f"{prefix}{part.name}.", brief)


def spelled(value: Any, *, brief: bool = False) -> Any:
    """Return a value in the notation of study files: the inverse of `parsed`."""
    # Frozen: what this returns for old configurations, because keys depend on it. After a change,
    # stored results are not found; tests/golden/test_keys.py fails.
    if isinstance(value, tuple):
        return tuple(spelled(item, brief=brief) for item in value)
    if not dataclasses.is_dataclass(value):
        return value
    kind: Any = type(value)
    fields = {
        part.name: _field(part, getattr(value, part.name), brief)
        for part in parts(kind)
        if not (brief and getattr(value, part.name) == part.default)
    }
    name = _name(kind, brief)
    if (form := short_form(kind)) and not brief:
        return form.written(fields)
    if not hasattr(kind, "tag"):
        return {"name": name, **fields} if name else fields
    if not fields:
        return name
    names = [part.name for part in parts(kind)]
    first = fields.get(names[0])
    # A mapping whose keys are field names is not written alone: it would be read as the fields.
    looks_whole = isinstance(first, Mapping) and set(first) <= set(names)
    return {name: first if list(fields) == names[:1] and not looks_whole else fields}


def _field(part: Part, value: Any, brief: bool) -> Any:
    origin = part.origins.get(value) if brief and isinstance(value, str) else None
    return spelled(value, brief=brief) if origin is None else origin.keyed(value)


def _name(kind: Any, brief: bool) -> str:
    """Return the tag or name of a dataclass, for `brief` with the digest of its plugin."""
    origin = origin_of(kind) if brief else None
    return kind_name(kind) if origin is None else origin.keyed(kind_name(kind))


def origins_in(node: Any) -> tuple[Origin, ...]:
    """Return the `Origin` of each plugin whose classes or datasets a configuration uses.

    If it uses several entries of a plugin, the digest is that of all their digests.
    """
    found: dict[Origin, set[str]] = {}
    for origin in _origins(node):
        found.setdefault(dataclasses.replace(origin, digest=""), set()).add(origin.digest)
    return tuple(
        dataclasses.replace(
            whole,
            digest=min(of) if len(of) == 1 else sha256("".join(sorted(of)).encode()).hexdigest(),
        )
        for whole, of in found.items()
    )


def plugins_of(node: Any) -> dict[str, str]:
    """Return a short digest of the code of each plugin that a configuration uses, by name."""
    return {origin.plugin: origin.keyed("").removeprefix("@") for origin in origins_in(node)}


def _origins(config: Any) -> Iterator[Origin]:
    for node in nodes(config):
        if (origin := origin_of(type(node))) is not None:
            yield origin
        for part in parts(type(node)):
            value = getattr(node, part.name)
            if isinstance(value, str) and (named := part.origins.get(value)) is not None:
                yield named


def nodes(value: Any) -> Iterator[Any]:
    """Yield all dataclasses in a configuration: itself, those of its fields and of list items."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif dataclasses.is_dataclass(value):
        yield value
        kind: Any = type(value)
        for part in parts(kind):
            yield from nodes(getattr(value, part.name))


@dataclass(frozen=True, slots=True)
class Under:
    """Short form that uses another dataclass's tag: `{beta: {a: 2, b: 5}}` is the law `beta-ab`."""

    tag: str

    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return a dataclass's values, by field, from this short form; None for other notations."""
        content = value.get(self.tag) if isinstance(value, Mapping) and len(value) == 1 else None
        is_ours = isinstance(content, Mapping) and content and set(content) <= set(names)
        return content if is_ours else None

    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a dataclass, given as values by field, in this short form for a study file."""
        return {self.tag: dict(fields)}

    def shape(self, names: Sequence[str]) -> str:
        """Return the pattern of this short form for messages, such as `{beta: {a: A, b: B}}`."""
        return f"{{{self.tag}: {{{', '.join(f'{name}: {name.upper()}' for name in names)}}}}}"

    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of values in this short form."""
        return {"type": "object", "additionalProperties": False, "properties": {self.tag: whole},
                "required": [self.tag]}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pairs:
    """Short form of two lists of numbers: `{0.5: 0.7, 1.0: 0.3}` for [0.5, 1.0] and [0.7, 0.3]."""

    keys: str
    """Name of the field with the mapping's keys, increasing; `values` names that of its values."""
    values: str

    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        del names
        if not isinstance(value, Mapping) or not value:
            return None
        try:
            pairs = sorted(((float(key), value[key]) for key in value), key=lambda pair: pair[0])
        except (TypeError, ValueError):
            return None
        return {self.keys: [key for key, _ in pairs], self.values: [part for _, part in pairs]}

    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        pairs = zip(fields[self.keys], fields[self.values], strict=True)
        return {repr(float(key)): value for key, value in pairs}

    def shape(self, names: Sequence[str]) -> str:
        first, second = (name.upper().removesuffix("S") for name in names)
        return f"{{{first}: {second}, ...}}"

    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        key = {"pattern": r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"}
        item = whole["properties"][self.values]["items"]
        return {"type": "object", "minProperties": 2, "propertyNames": key,
                "additionalProperties": item}  # fmt: skip


def short_form(kind: Any) -> Under | Pairs | None:
    """Return a dataclass's short form; None if it has none."""
    found = getattr(kind, "short", None)
    return found if isinstance(found, Under | Pairs) else None


def tag_meant(kinds: Mapping[str, Any], entry: Mapping[str, Any], names: Mapping[str, Any]) -> str:
    """Return the tag that `{TAG: CONTENT}` stands for: `{beta: {a: 2, b: 5}}` gives `beta-ab`."""
    (tag,) = entry
    meant = (
        own for own, kind in kinds.items()
        if isinstance(form := short_form(kind), Under) and form.fields(entry, names[own])
    )  # fmt: skip
    return next(meant, tag)


class SpellingError(ValueError):
    """Error: a value of a configuration has the wrong type, or a name in it does not exist."""

    def __init__(
        self,
        expected: str,
        value: object,
        names: Collection[str] = (),
        path: str = "",
        noun: str = "",
    ) -> None:
        super().__init__(f"{path}{': ' * bool(path)}expected {expected}, got {shown(value)}")
        self.expected, self.value = expected, value
        self.names = tuple(names)
        """The known names, if a name was expected; `noun` is that of their registry, if any."""
        self.path = path
        """Path from the given value to the wrong part; empty if the whole value is wrong."""
        self.noun = noun

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.expected, self.value, self.names, self.path, self.noun)

    def within(self, path: str) -> "SpellingError":
        """Return this error with a prefix, such as a field's name, before its path."""
        below = f"{path}.{self.path}" if self.path else path
        return type(self)(self.expected, self.value, self.names, below, self.noun)


def expected(hint: Any) -> str:
    """Return a description of a type's values, for messages: `an integer or null`."""
    if known := words(hint):
        return f"one of {', '.join(map(str, known))}"
    hint = unmarked(hint)
    names = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
    if hint in names:
        return names[hint]
    if get_origin(hint) is tuple:
        return f"a list of {_plural(get_args(hint)[0])}"
    if hint in members(hint) and dataclasses.is_dataclass(hint):
        return spelling_of(hint)
    spelled = ("null" if part is type(None) else expected(part) for part in members(hint))
    each = list(dict.fromkeys(spelled))
    return " or ".join([", ".join(each[:-1]), each[-1]] if each[:-1] else each)


def spellings_under(options: Mapping[str, Any], tag: str) -> str:
    """Return the notations that begin with a tag: `{beta: ALPHA} or {beta: {a: A, b: B}}`."""
    forms = {kind: short_form(kind) for kind in options.values()}
    under = [kind for kind, form in forms.items() if isinstance(form, Under) and form.tag == tag]
    return " or ".join(map(spelling_of, [options[tag], *under]))


def _plural(hint: Any) -> str:
    plain = {} if words(hint) else {int: "integers", float: "numbers", str: "texts"}
    return plain.get(unmarked(hint), f"({expected(hint)})")


def spelling_of(kind: Any) -> str:
    """Return the notation of a dataclass in study files, for messages: `erm`, `{beta: ALPHA}`."""
    fields = [part.name for part in parts(kind)]
    if form := short_form(kind):
        return form.shape(fields)
    mapping = ", ".join(f"{name}: {name.upper()}" for name in fields)
    if hasattr(kind, "tag"):
        if not fields:
            return str(kind.tag)
        return f"{{{kind.tag}: {fields[0].upper() if len(fields) == 1 else f'{{{mapping}}}'}}}"
    named = f"name: {kind.name}, " if kind_name(kind) else ""
    return f"{{{named}{mapping}}}"


_PLAIN: dict[Any, list[Any]] = {
    type(None): [None],
    bool: [False, True],
    int: [*range(7), 8, 10, 12, 16, 24, 64, 1000],
    float: [0.0, 0.125, 0.25, 0.3, 0.5, 0.9, 1.0, 2.0, 4.0, 16.0, 20.0, 1000.0],
    str: ["a", "b"],
}


def possible_values(hint: Any) -> list[Any]:
    """Return example values of a type, as a study file would write them, within its limits."""
    origin, arguments = get_origin(hint), get_args(hint)
    if known := words(hint):  # also of a `Literal`
        return list(known)
    if origin is Annotated:
        marks = limits(hint)
        more = [mark.inside for mark in marks if hasattr(mark, "inside")]
        found = [*possible_values(arguments[0]), *(int(v) if v == int(v) else v for v in more)]
        return [value for value in found if all(mark.holds(value) for mark in marks)]
    if members(hint) != (hint,):
        return [value for member in members(hint) for value in possible_values(member)]
    if origin is tuple:
        items = possible_values(arguments[0])
        return [[], *([item] for item in items), items[:2], *([item, item] for item in items)]
    return spellings(hint) if dataclasses.is_dataclass(hint) else list(_PLAIN[hint])


def spellings(kind: Any) -> list[Any]:
    """Return examples of a dataclass, as a study file would write them.

    The first sets only required fields; each further one changes the value of one of these. A
    dataclass whose required fields depend on each other has a valid `example` as class variable.
    """
    fields = parts(kind)
    required = {p.name: possible_values(p.hint) for p in fields if p.default is REQUIRED}
    first = {name: known[0] for name, known in required.items()}
    found = [first] + [first | {name: v} for name, known in required.items() for v in known[1:]]
    if example := getattr(kind, "example", None):
        found.append(dict(example))
    if hasattr(kind, "tag"):
        return [{kind.tag: given} if given else kind.tag for given in found]
    return [{"name": kind.name, **given} if kind_name(kind) else given for given in found]
