"""Written forms: a tree's values as a study file writes them, whole and under dotted paths."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from mixup_core.tree.catalogue import kind_name
from mixup_core.tree.parts import REQUIRED, parts


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
            usual = default if default in {None, REQUIRED} else kind_name(type(default))
            chosen = None if value is None else kind_name(type(value))
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
            return {"name": kind.name, **fields} if kind_name(kind) else fields
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
