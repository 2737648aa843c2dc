"""Written forms: convert the values of a configuration back to the notation of study files."""

import dataclasses
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from mixup_core.config.catalogue import Origin, kind_name, origin_of
from mixup_core.config.parts import REQUIRED, Part, parts
from mixup_core.config.short_forms import short_form


def flatten(node: Any, *, brief: bool = False) -> dict[str, Any]:
    """Return the values of a configuration by dotted path, as study files write them."""
    return {path: value for path, value, _ in _walked(node, "", brief)}


def defaults(node: Any, *, brief: bool = False) -> dict[str, Any]:
    """Return the default of each field of a configuration by dotted path; `REQUIRED` if none.

    The paths are those that `flatten` returns. The defaults below a choice are those of the chosen
    dataclass.
    """
    return {path: default for path, _, default in _walked(node, "", brief)}


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
    match value:
        case tuple():
            return tuple(spelled(item, brief=brief) for item in value)
        case _ if dataclasses.is_dataclass(value):
            kind: Any = type(value)
            fields = {
                part.name: _field(part, getattr(value, part.name), brief)
                for part in parts(kind)
                if not (brief and getattr(value, part.name) == part.default)
            }
            name = _name(kind, brief)
            if (form := short_form(kind)) and not brief:
                return form.written(fields)
            if hasattr(kind, "tag"):
                return _spelled_tagged(kind, name, fields)
            return {"name": name, **fields} if name else fields
        case _:
            return value


def _field(part: Part, value: Any, brief: bool) -> Any:
    origin = part.origins.get(value) if brief and isinstance(value, str) else None
    return spelled(value, brief=brief) if origin is None else origin.keyed(value)


def _name(kind: Any, brief: bool) -> str:
    """Return the tag or name of a dataclass, for `brief` with the digest of its plugin."""
    origin = origin_of(kind) if brief else None
    return kind_name(kind) if origin is None else origin.keyed(kind_name(kind))


def _spelled_tagged(kind: Any, tag: str, fields: Mapping[str, Any]) -> Any:
    if not fields:
        return tag
    names = [part.name for part in parts(kind)]
    first = fields.get(names[0])
    # A mapping whose keys are field names is not written alone: it would be read as the fields.
    is_alone = list(fields) == names[:1] and not (
        isinstance(first, Mapping) and set(first) <= set(names)
    )
    return {tag: first if is_alone else dict(fields)}


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


def _origins(value: Any) -> Iterator[Origin]:
    if isinstance(value, tuple):
        for item in value:
            yield from _origins(item)
    elif dataclasses.is_dataclass(value):
        kind: Any = type(value)
        if (origin := origin_of(kind)) is not None:
            yield origin
        for part in parts(kind):
            below = getattr(value, part.name)
            if isinstance(below, str) and (named := part.origins.get(below)) is not None:
                yield named
            yield from _origins(below)
