"""Building: makes configurations from values by dotted path, and parses values of study files."""

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar, get_args, get_origin

from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import REQUIRED, Part, members, noun_of, parts, unmarked, words
from mixup_core.config.written_forms import (
    SpellingError,
    expected,
    short_form,
    spelling_of,
    spellings_under,
)
from mixup_core.rules import RuleError

T = TypeVar("T")

_MOST_FORMS = 3
"""Maximum number of notations that a message lists."""


def with_values(node: T, values: Mapping[str, Any]) -> T:
    """Return a copy of a configuration with the values at given paths replaced; check the copy."""
    rebuilt: T = _rebuilt(type(node), _held(node), _nested(values), "")
    return rebuilt


def built(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return a configuration, made from values by dotted path; other fields have defaults."""
    made: T = _rebuilt(kind, {}, _nested(values), "")
    return made


def parsed(hint: Any, value: Any) -> Any:
    """Convert a value of a study file to a type, such as `float | None`; check types strictly.

    A boolean is not a number, a fraction not an integer, text not a number. A whole number is
    converted to float where a float is needed. A value that has the type already is returned as is.
    """
    if choices := words(hint):
        # Python has True == 1, but they are not the same in a study file.
        if (isinstance(value, bool), value) not in [(isinstance(c, bool), c) for c in choices]:
            noun = noun_of(hint) if isinstance(value, str) else ""
            raise SpellingError(expected(hint), value, tuple(map(str, choices)), noun=noun)
        return value
    hint = unmarked(hint)
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise SpellingError(expected(hint), value)
        return tuple(_parsed_at(str(n), get_args(hint)[0], item) for n, item in enumerate(value))
    if value is None and type(None) in members(hint):
        return None
    kinds = {kind_name(kind): kind for kind in members(hint) if dataclasses.is_dataclass(kind)}
    others = [kind for kind in members(hint) if not dataclasses.is_dataclass(kind)]
    plain = [kind for kind in others if kind is not type(None)]
    if plain == [hint]:
        return _parsed_plain(hint, value)
    for member in plain:
        with suppress(SpellingError):
            return parsed(member, value)
    if not kinds:
        raise SpellingError(expected(hint), value)
    return _parsed_choice(hint, kinds, value)


def chosen_kind(part: Part, name: object, path: str) -> type:
    """Return the dataclass that a tag or name selects for a field."""
    if not isinstance(name, str) or name not in part.options:
        names = tuple(part.options)
        raise SpellingError(f"one of {', '.join(names)}", name, names, path, part.noun)
    return part.options[name]


def carried(old: Any, kind: type) -> dict[str, Any]:
    """Return the field values that a dataclass passes on to another one that replaces it.

    These are the values of fields that both have, with the same name and type, and that differ from
    the default of the old dataclass, such as a learning rate if `optimizer.name` changes. A
    dataclass with a required field gets none.
    """
    if old is None or any(part.default is REQUIRED for part in parts(kind)):
        return {}
    before: Any = type(old)
    shared = {part.name: part.hint for part in parts(kind)}
    values = ((part, getattr(old, part.name)) for part in parts(before))
    return {
        part.name: value
        for part, value in values
        if shared.get(part.name) == part.hint and value != part.default
    }


def check_owner(part: Part, kind: type, field: str, path: str, value: Any) -> None:
    """Refuse a field of another dataclass of the choice: `mix.law.alpha` if the law is `erm`."""
    owners = [
        name for name, option in part.options.items() if field in {p.name for p in parts(option)}
    ]
    if owners and kind_name(kind) not in owners:
        choice = path.rpartition(part.name)[0] + part.kind_path
        forms = [spelling_of(part.options[name]) for name in owners] if choice == path else []
        raise RuleError(
            f"{field} needs {choice} to be {' or '.join(owners)}",
            {choice: kind_name(kind), f"{path}.{field}": value},
            fields=(f"{path}.{field}", choice),
            hint=f"write {choice}: {' or '.join(forms)}" if 0 < len(forms) <= _MOST_FORMS else "",
        )


@dataclasses.dataclass(slots=True)
class _Given:
    """The values to set at a path and at the paths below it."""

    value: Any = dataclasses.field(default_factory=lambda: REQUIRED)
    below: "dict[str, _Given]" = dataclasses.field(default_factory=dict)


def _nested(values: Mapping[str, Any]) -> _Given:
    root = _Given()
    for path, value in values.items():
        node = root
        for name in path.split("."):
            node = node.below.setdefault(name, _Given())
        node.value = value
    return root


def _held(node: Any) -> dict[str, Any]:
    """Return the field values of a dataclass by name; empty for None."""
    kind: Any = type(node)
    return {} if node is None else {part.name: getattr(node, part.name) for part in parts(kind)}


def _rebuilt(kind: type, held: Mapping[str, Any], given: _Given, prefix: str) -> Any:
    """Return a dataclass whose fields come from `given`, else `held`, else their defaults."""
    parts_by_name = {part.name: part for part in parts(kind)}
    changes: dict[str, Any] = {}
    for name, entry in given.below.items():
        if name not in parts_by_name:
            raise KeyError(
                f"path must name a field, got (path={prefix + name!r}); "
                f"{kind.__name__} has {', '.join(parts_by_name) or 'no fields'}."
            )
        part = parts_by_name[name]
        changes[name] = _value(part, held.get(name, part.default), entry, f"{prefix}{name}")
    values = {**held, **changes}
    for name, part in parts_by_name.items():
        if part.default is REQUIRED and name not in values:
            raise RuleError(f"{prefix}{name} must be given", {f"{prefix}{name}": None})
    try:
        return kind(**values)
    except RuleError as error:
        raise error.within(prefix) from error


def _value(part: Part, old: Any, entry: _Given, path: str) -> Any:
    old = None if old is REQUIRED else old
    if part.options:
        return _chosen(part, old, entry, path)
    if part.is_group:
        if entry.value is not REQUIRED:
            old = _parsed_at(path, part.hint, entry.value)
        return _rebuilt(part.hint, _held(old), entry, f"{path}.")
    if entry.below:
        raise KeyError(
            f"path must name a field, got (path={path + '.' + next(iter(entry.below))!r}); "
            f"{path} has no fields."
        )
    return _parsed_at(path, part.hint, entry.value)


def _chosen(part: Part, old: Any, entry: _Given, path: str) -> Any:
    """Return the new dataclass of a choice, set as a whole, by its tag or by some fields."""
    fields = dict(entry.below)
    name = fields.pop("name", None) if part.is_named else None
    kind = type(old)
    value = entry.value if name is None else name.value
    if value is None and part.is_optional and not fields:
        return None
    if name is not None or isinstance(value, str):
        kind = chosen_kind(part, value, f"{path}.name" if name is not None else path)
    elif entry.value is not REQUIRED:
        old = _parsed_at(path, part.hint, entry.value)
        kind = type(old)
    if old is None and kind is type(None):
        first = next(iter(fields))
        raise RuleError(
            f"{path} must be set before its fields can be set",
            {path: None, f"{path}.{first}": fields[first].value},
        )
    held = _held(old)
    if type(old) is not kind:
        held = carried(old, kind) if part.is_named else {}
    for field in fields:
        check_owner(part, kind, field, path, fields[field].value)
    return _rebuilt(kind, held, _Given(below=fields), f"{path}.")


def _parsed_at(path: str, hint: Any, value: Any) -> Any:
    try:
        return parsed(hint, value)
    except RuleError as error:
        raise error.within(f"{path}.") from error
    except SpellingError as error:
        raise error.within(path) from error


def _parsed_plain(hint: Any, value: Any) -> Any:
    is_right = isinstance(value, int | float if hint is float else hint)
    if not is_right or (isinstance(value, bool) and hint not in {bool, object}):
        raise SpellingError(expected(hint), value)
    return float(value) if hint is float else value


def _parsed_choice(hint: Any, options: Mapping[str, Any], value: Any) -> Any:
    if type(value) in options.values():
        return value
    for kind, form in ((kind, short_form(kind)) for kind in options.values()):
        fields = form and form.fields(value, [part.name for part in parts(kind)])
        if fields:
            return built(kind, fields)
    plain = options.get("")
    if plain and isinstance(value, Mapping):
        known = {part.name for part in parts(plain)}
        if len(options) == 1 or set(value) <= known:
            return _parsed_fields(plain, value)
    options = {tag: kind for tag, kind in options.items() if tag}
    if isinstance(value, Mapping) and isinstance(name := value.get("name"), str):
        if name not in options:
            names = tuple(options)
            raise SpellingError(f"one of {', '.join(names)}", name, names, "name", noun_of(hint))
        return _parsed_fields(options[name], {key: value[key] for key in value if key != "name"})
    if isinstance(value, str) and value in options:
        return built(options[value], {})
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in options:
        is_name = isinstance(value, str) or (isinstance(value, Mapping) and len(value) == 1)
        noun = noun_of(hint) if is_name else ""
        raise SpellingError(expected(hint), value, tuple(options), noun=noun)
    ((tag, content),) = value.items()
    return _parsed_under(options, tag, content)


def _parsed_under(options: Mapping[str, Any], tag: str, content: Any) -> Any:
    """Return the dataclass that `{TAG: CONTENT}` stands for."""
    kind = options[tag]
    names = [part.name for part in parts(kind)]
    if isinstance(content, Mapping) and set(content) <= set(names):
        return built(kind, content)
    form = short_form(kind)
    if form and (fields := form.fields(content, names)):
        return built(kind, fields)
    if len(names) == 1:
        (name,) = names
        try:
            return built(kind, {name: content})
        except SpellingError as error:
            if error.path != name or not isinstance(content, Mapping | list):
                raise
    raise SpellingError(spellings_under(options, tag), {tag: content})


def _parsed_fields(kind: type, values: Mapping[Any, Any]) -> Any:
    """Return a dataclass from a mapping of its fields, as study files write them."""
    names = tuple(part.name for part in parts(kind))
    for name in values:
        if name not in names:
            raise SpellingError(f"one of {', '.join(names)}", name, names)
    return built(kind, values)
