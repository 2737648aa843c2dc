"""Choices: finds the dataclass that a tag or name selects, and which fields it keeps."""

from typing import Any

from mixup_core.rules import RuleError
from mixup_core.tree.catalogue import kind_name
from mixup_core.tree.parts import REQUIRED, Part, parts
from mixup_core.tree.spelling_errors import SpellingError


def chosen_kind(part: Part, name: object, path: str) -> type:
    """Return the dataclass of a choice that has this tag or name.

    Raises:
        SpellingError: If none has; its path is the given path.
    """
    if not isinstance(name, str) or name not in part.options:
        raise SpellingError(f"one of {', '.join(part.options)}", name, tuple(part.options), path)
    return part.options[name]


def carried(old: Any, kind: type) -> dict[str, Any]:
    """Return the field values to keep when a choice changes its kind: those of shared fields.

    Fields with the same name but different types are not kept. The values are not checked, because
    other given values may replace them.
    """
    if old is None or any(part.default is REQUIRED for part in parts(kind)):
        return {}
    before: Any = type(old)
    theirs = {part.name: part.hint for part in parts(before)}
    shared = (part.name for part in parts(kind) if theirs.get(part.name) == part.hint)
    return {name: getattr(old, name) for name in shared}


def check_owner(part: Part, kind: type, field: str, path: str, value: Any) -> None:
    """Check that a field belongs to the chosen kind, if it belongs to any.

    Raises:
        RuleError: If it belongs to other kinds only.
    """
    owners = [
        name for name, option in part.options.items() if field in {p.name for p in parts(option)}
    ]
    if owners and kind_name(kind) not in owners:
        at = path.rpartition(part.name)[0] + part.kind_path
        raise RuleError(
            f"{field} needs {at} to be {' or '.join(owners)}",
            {at: kind_name(kind), f"{path}.{field}": value},
            fields=(f"{path}.{field}", at),
        )
