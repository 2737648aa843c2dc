"""A tree of frozen dataclasses under dotted paths: what it is made of, flattened and built again.

A field holds a plain value, another dataclass (a group), or one of several dataclasses (a choice).
The dataclasses of a choice are told apart by a class variable:

    tag    The choice stands at its own path: `mix.law: beta`, `mix.law.alpha: 0.5`; written whole
           as `erm`, as `{beta: 0.5}` if it has one field, else as `{tag: {field: value, ...}}`.
    name   The choice is a group whose kind is one of its values: `optimizer.name: sgd`,
           `optimizer.lr: 0.1`; written whole as `{name: sgd, lr: 0.1}`.

In a list, one of the dataclasses may have neither: it is written as its fields.

Nothing here knows what the values mean.
"""

import dataclasses
import functools
import types
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from mixup_core.rules import RuleError, shown

REQUIRED: Final = dataclasses.MISSING
"""Default of a field without one."""

T = TypeVar("T")


class SpellingError(ValueError):
    """A value of the wrong type, or a name that is none of those known."""

    def __init__(
        self, expected: str, value: object, names: Collection[str] = (), path: str = ""
    ) -> None:
        super().__init__(f"{path}{': ' * bool(path)}expected {expected}, got {shown(value)}")
        self.expected = expected
        self.value = value
        self.names = tuple(names)
        """The known names, where one was expected."""
        self.path = path
        """Where the value stands below what was given; empty if it is all of it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the error pass between processes."""
        return type(self), (self.expected, self.value, self.names, self.path)

    def within(self, path: str) -> "SpellingError":
        """Return the error with its path below another."""
        below = f"{path}.{self.path}" if self.path else path
        return type(self)(self.expected, self.value, self.names, below)


@dataclass(frozen=True, slots=True)
class Among:
    """Marks text that is one of some names: `Annotated[str, Among(("digits", "mnist"))]`."""

    names: Collection[str] = dataclasses.field(hash=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One field of a dataclass of the tree."""

    name: str
    hint: Any
    """Its type; of a choice, any of its types."""
    default: Any
    """`REQUIRED` if there is none."""
    is_group: bool = False
    options: Mapping[str, type] = dataclasses.field(default_factory=dict)
    """Tag or name to dataclass; empty unless the field is a choice."""
    is_named: bool = False
    """Whether a choice is told apart by `name`, not by `tag`."""
    is_optional: bool = False
    """Whether a choice may be None."""

    @property
    def kind_path(self) -> str:
        """Where the tag or name of a choice stands, from the field on."""
        return f"{self.name}.name" if self.is_named else self.name


@functools.cache
def parts(kind: Any) -> tuple[Part, ...]:
    """Return the fields of a dataclass in their order.

    Kept, because a study of 10,000 runs asks a million times.
    """
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_part(field, hints[field.name]) for field in dataclasses.fields(kind))


def _part(field: "dataclasses.Field[Any]", hint: Any) -> Part:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    kinds: list[Any] = [member for member in members(hint) if dataclasses.is_dataclass(member)]
    others = [member for member in members(hint) if member not in {*kinds, type(None)}]
    options = {} if others else {_kind_name(kind): kind for kind in kinds}
    options = {} if "" in options else options
    return Part(
        name=field.name,
        hint=hint,
        default=default,
        is_group=hint in kinds and not options,
        options=options,
        is_named=bool(options) and not any(hasattr(kind, "tag") for kind in kinds),
        is_optional=bool(options) and type(None) in members(hint),
    )


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; of any other type, itself."""
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def _kind_name(kind: Any) -> str:
    """Return the tag or name of a dataclass of a choice; none of any other."""
    found = getattr(kind, "tag", None) or getattr(kind, "name", None)
    return found if isinstance(found, str) else ""


def flatten(node: Any, *, brief: bool = False) -> dict[str, Any]:
    """Return the values of a tree under their dotted paths, each as a study file writes it.

    Args:
        node: The tree.
        brief: As for `spelled`; only what stands in lists is concerned.
    """
    return {path: spelled(value, brief=brief) for path, value, _ in _walked(node, "")}


def defaults(node: Any, *, brief: bool = False) -> dict[str, Any]:
    """Return the defaults of the paths of `flatten`, `REQUIRED` where there is none.

    Below a choice they are those of the kind that is chosen.
    """
    return {path: spelled(default, brief=brief) for path, _, default in _walked(node, "")}


def _walked(node: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each path, its value and its default; of a choice, the names of their kinds."""
    kind: Any = type(node)
    for part in parts(kind):
        value, default = getattr(node, part.name), part.default
        if not part.options and not part.is_group:
            yield f"{prefix}{part.name}", value, default
            continue
        if part.options:
            usual = default if default in {None, REQUIRED} else _kind_name(type(default))
            chosen = None if value is None else _kind_name(type(value))
            yield f"{prefix}{part.kind_path}", chosen, usual
        if value is not None:
            yield from _walked(value, f"{prefix}{part.name}.")


def spelled(value: Any, *, brief: bool = False) -> Any:
    """Return a value as a study file writes it: the inverse of `parsed`.

    Args:
        value: A value of a field.
        brief: Leave out fields of dataclasses that have their default, so that a field added later
            changes the spelling of no older value. This is for keys: it is not always parsed.
    """
    match value:
        case tuple():
            return tuple(spelled(item, brief=brief) for item in value)
        case _ if dataclasses.is_dataclass(value):
            kind: Any = type(value)
            fields = {
                part.name: spelled(getattr(value, part.name), brief=brief)
                for part in parts(kind)
                if not (brief and getattr(value, part.name) == part.default)
            }
            if hasattr(kind, "tag"):
                return _spelled_tagged(kind, fields)
            return {"name": kind.name, **fields} if _kind_name(kind) else fields
        case _:
            return value


def _spelled_tagged(kind: Any, fields: Mapping[str, Any]) -> Any:
    if not fields:
        return kind.tag
    names = [part.name for part in parts(kind)]
    first = fields.get(names[0])
    # A mapping that looks like the fields themselves is not written alone: it would be read so.
    is_alone = list(fields) == names[:1] and not (
        isinstance(first, Mapping) and set(first) <= set(names)
    )
    return {kind.tag: first if is_alone else dict(fields)}


def with_values(node: T, values: Mapping[str, Any]) -> T:
    """Return a tree with the values at some dotted paths replaced, checked again.

    Args:
        node: The tree to start from; it is not changed.
        values: Dotted path to value, as held or as written. A choice is given whole under its path
            (`mix.law: {beta: 0.5}`), by its tag and fields, or by a field alone
            (`mix.law.alpha: 0.5`). All are set before anything is checked: their order is no
            matter.

    Raises:
        KeyError: If a path names no field.
        SpellingError: If a value has the wrong type; its path is the dotted path.
        RuleError: If a value is out of range or the parts contradict each other.
    """
    rebuilt: T = _rebuilt(type(node), node, _nested(values), "")
    return rebuilt


def built(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return the tree of a type made of values by dotted path, defaults for the rest.

    Raises:
        KeyError: If a path names no field.
        SpellingError: If a value has the wrong type; its path is the dotted path.
        RuleError: If a required value is missing, one is out of range, or the parts contradict each
            other; its fields are dotted paths.
    """
    made: T = _rebuilt(kind, None, _nested(values), "")
    return made


class _Given:
    """What is given at a path, and below it."""

    __slots__ = ("below", "value")

    def __init__(self) -> None:
        self.value: Any = REQUIRED
        self.below: dict[str, _Given] = {}


def _nested(values: Mapping[str, Any]) -> _Given:
    root = _Given()
    for path, value in values.items():
        node = root
        for name in path.split("."):
            node = node.below.setdefault(name, _Given())
        node.value = value
    return root


def _rebuilt(kind: type, old: Any, given: _Given, prefix: str) -> Any:
    """Return a dataclass like an old one, or like its defaults, with what is given changed.

    Raises:
        KeyError: If a name is no field.
        RuleError: If a required value is missing or a rule is broken.
    """
    known = {part.name: part for part in parts(kind)}
    changes: dict[str, Any] = {}
    for name, entry in given.below.items():
        if name not in known:
            raise KeyError(
                f"`path names a field` must hold, got (path={prefix + name!r}); "
                f"{kind.__name__} has {', '.join(known) or 'no fields'}."
            )
        changes[name] = _value(known[name], old, entry, f"{prefix}{name}")
    if old is None:
        for name, part in known.items():
            if part.default is REQUIRED and name not in changes:
                raise RuleError(f"{prefix}{name} is given", {f"{prefix}{name}": None})
    try:
        return kind(**changes) if old is None else dataclasses.replace(old, **changes)
    except RuleError as error:
        raise error.within(prefix) from error


def _value(part: Part, owner: Any, entry: _Given, path: str) -> Any:
    old = getattr(owner, part.name) if owner is not None else part.default
    old = None if old is REQUIRED else old
    if part.options:
        return _chosen(part, old, entry, path)
    if part.is_group:
        if entry.value is not REQUIRED:
            old = _parsed_at(path, part.hint, entry.value)
        return _rebuilt(part.hint, old, entry, f"{path}.")
    if entry.below:
        raise KeyError(
            f"`path names a field` must hold, got (path={path + '.' + next(iter(entry.below))!r}); "
            f"{path} has no parts."
        )
    return _parsed_at(path, part.hint, entry.value)


def _chosen(part: Part, old: Any, entry: _Given, path: str) -> Any:
    """Return the value of a choice from what is given of it, whole, by kind or by field.

    Raises:
        RuleError: If a field is given of a choice that is None.
    """
    fields = dict(entry.below)
    named = fields.pop("name", None) if part.is_named else None
    kind = type(old)
    value = entry.value if named is None else named.value
    if value is None and part.is_optional and not fields:
        return None
    if named is not None or isinstance(value, str):
        kind = _option(part, value, f"{path}.name" if named is not None else path)
    elif entry.value is not REQUIRED:
        old = _parsed_at(path, part.hint, entry.value)
        kind = type(old)
    if old is None and kind is type(None):
        first = next(iter(fields))
        raise RuleError(f"{path} is chosen", {path: None, f"{path}.{first}": fields[first].value})
    if type(old) is not kind:
        old = _carried(old, kind, path) if part.is_named else None
    below = _Given()
    below.below = fields
    for field in fields:
        _check_owner(part, kind, field, path, fields[field].value)
    return _rebuilt(kind, old, below, f"{path}.")


def _option(part: Part, name: object, path: str) -> type:
    if not isinstance(name, str) or name not in part.options:
        raise SpellingError(f"one of {', '.join(part.options)}", name, tuple(part.options), path)
    return part.options[name]


def _carried(old: Any, kind: type, path: str) -> Any:
    """Return a named choice of another kind with the values that both kinds have.

    Raises:
        RuleError: If one of them is out of the other kind's range.
    """
    if old is None or any(part.default is REQUIRED for part in parts(kind)):
        return None
    before: Any = type(old)
    shared = {part.name for part in parts(before)} & {part.name for part in parts(kind)}
    try:
        return kind(**{name: getattr(old, name) for name in shared})
    except RuleError as error:
        raise error.within(f"{path}.") from error


def _check_owner(part: Part, kind: type, field: str, path: str, value: Any) -> None:
    """Check that a field belongs to the kind that was chosen, if to any.

    Raises:
        RuleError: If it belongs to others.
    """
    owners = [
        name for name, option in part.options.items() if field in {p.name for p in parts(option)}
    ]
    if owners and _kind_name(kind) not in owners:
        at = path.rpartition(part.name)[0] + part.kind_path
        raise RuleError(
            f"{field} belongs to {' and '.join(owners)}",
            {at: _kind_name(kind), f"{path}.{field}": value},
            fields=(f"{path}.{field}", at),
        )


def _parsed_at(path: str, hint: Any, value: Any) -> Any:
    try:
        return parsed(hint, value)
    except RuleError as error:
        raise error.within(f"{path}.") from error
    except SpellingError as error:
        raise error.within(path) from error


def parsed(hint: Any, value: Any) -> Any:
    """Return a value of a type from how it is written, types checked strictly.

    A boolean is no number, a fraction no integer, text no number; a whole number is a float where
    one is wanted. A value that has its type already is returned as it is.

    Raises:
        SpellingError: If it is none.
        RuleError: If it is out of range.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        mark = next((mark for mark in arguments[1:] if isinstance(mark, Among)), None)
        if mark is not None and (not isinstance(value, str) or value not in mark.names):
            raise SpellingError(expected(hint), value, mark.names)
        return parsed(arguments[0], value)
    if origin is Literal:
        if value not in arguments or isinstance(value, bool) != isinstance(arguments[0], bool):
            raise SpellingError(expected(hint), value, tuple(map(str, arguments)))
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise SpellingError(expected(hint), value)
        return tuple(_parsed_at(str(at), arguments[0], item) for at, item in enumerate(value))
    kinds = {_kind_name(kind): kind for kind in members(hint) if dataclasses.is_dataclass(kind)}
    if value is None and type(None) in members(hint):
        return None
    return _parsed_choice(hint, kinds, value) if kinds else _parsed_plain(hint, value)


def _parsed_plain(hint: Any, value: Any) -> Any:
    """Return a value of a type without parts, or of one of several types.

    Raises:
        SpellingError: If it is none.
    """
    if hint not in members(hint):
        for member in members(hint):
            with suppress(SpellingError):
                return parsed(member, value)
        raise SpellingError(expected(hint), value)
    is_right = isinstance(value, int | float if hint is float else hint)
    if not is_right or (isinstance(value, bool) and hint not in {bool, object}):
        raise SpellingError(expected(hint), value)
    return float(value) if hint is float else value


def _parsed_choice(hint: Any, options: Mapping[str, Any], value: Any) -> Any:
    if type(value) in options.values():
        return value
    plain = options.get("")
    if plain and isinstance(value, Mapping):
        known = {part.name for part in parts(plain)}
        if len(options) == 1 or set(value) <= known:
            return _parsed_fields(plain, value)
    options = {tag: kind for tag, kind in options.items() if tag}
    if isinstance(value, Mapping) and isinstance(name := value.get("name"), str):
        if name not in options:
            raise SpellingError(f"one of {', '.join(options)}", name, tuple(options), "name")
        return _parsed_fields(options[name], {key: value[key] for key in value if key != "name"})
    if isinstance(value, str) and value in options:
        return built(options[value], {})
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in options:
        raise SpellingError(expected(hint), value, tuple(options))
    ((tag, content),) = value.items()
    names = [part.name for part in parts(options[tag])]
    if isinstance(content, Mapping) and set(content) <= set(names):
        return built(options[tag], content)
    if len(names) != 1:
        raise SpellingError(expected(hint), value, tuple(options))
    return built(options[tag], {names[0]: content})


def _parsed_fields(kind: type, values: Mapping[Any, Any]) -> Any:
    """Return a dataclass from its fields as they are written.

    Raises:
        SpellingError: If one is unknown.
    """
    known = tuple(part.name for part in parts(kind))
    for name in values:
        if name not in known:
            raise SpellingError(f"one of {', '.join(known)}", name, known)
    return built(kind, values)


def expected(hint: Any) -> str:
    """Return what a value of a type looks like, for messages: `an integer or null`."""
    names = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
    if hint in names:
        return names[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        among = [mark for mark in arguments[1:] if isinstance(mark, Among)]
        return f"one of {', '.join(among[0].names)}" if among else expected(arguments[0])
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin is tuple:
        return f"a list of {_plural(arguments[0])}"
    if dataclasses.is_dataclass(hint):
        return _spelling_of(hint)
    each = ["null" if part is type(None) else expected(part) for part in arguments]
    return " or ".join([", ".join(each[:-1]), each[-1]] if each[:-1] else each)


def _plural(hint: Any) -> str:
    return {int: "integers", float: "numbers", str: "texts"}.get(hint, f"({expected(hint)})")


def _spelling_of(kind: Any) -> str:
    """Return how a dataclass is written: `erm`, `{beta: ALPHA}`, `{law: LAW, until: UNTIL}`."""
    fields = [part.name for part in parts(kind)]
    mapping = ", ".join(f"{name}: {name.upper()}" for name in fields)
    if hasattr(kind, "tag"):
        if not fields:
            return str(kind.tag)
        return f"{{{kind.tag}: {fields[0].upper() if len(fields) == 1 else f'{{{mapping}}}'}}}"
    named = f"name: {kind.name}, " if _kind_name(kind) else ""
    return f"{{{named}{mapping}}}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """A dotted path that a value may be given under."""

    path: str
    part: Part
    """The field, of a named choice with the type of the name alone."""
    owner: type
    """The dataclass whose field it is."""


@functools.cache
def leaves(kind: type) -> Mapping[str, Leaf]:
    """Return every path under which a tree of this type may be given a value, in their order.

    A field that several kinds of a choice have is there once.
    """
    found: dict[str, Leaf] = {}
    for leaf in _leaves(kind, ""):
        found.setdefault(leaf.path, leaf)
    return found


def _leaves(kind: type, prefix: str) -> Iterator[Leaf]:
    for part in parts(kind):
        names = tuple(part.options)
        named = dataclasses.replace(part, hint=Literal[names]) if part.is_named else part
        if not part.is_group:
            yield Leaf(path=f"{prefix}{part.kind_path}", part=named, owner=kind)
        below = {part.name: part.hint} if part.is_group else part.options
        for inside in below.values():
            yield from _leaves(inside, f"{prefix}{part.name}.")
