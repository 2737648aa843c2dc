"""Choices: the dataclass that a tag or name selects, and values to keep if it replaces another."""

from typing import Any

from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import REQUIRED, Part, parts
from mixup_core.config.spelling_errors import SpellingError, spelling_of
from mixup_core.rules import RuleError

_MOST_FORMS = 3
"""Maximum number of notations that a message lists."""


def chosen_kind(part: Part, name: object, path: str) -> type:
    """Return the dataclass that a tag or name selects for a field."""
    if not isinstance(name, str) or name not in part.options:
        known = tuple(part.options)
        raise SpellingError(f"one of {', '.join(known)}", name, known, path, part.noun)
    return part.options[name]


def carried(old: Any, kind: type) -> dict[str, Any]:
    """Return the field values that a dataclass passes on to another one that replaces it.

    These are the values of fields that both have, with the same name and type, and that differ from
    the default of the old dataclass, such as a learning rate if `optimizer.name` changes. A field
    at its default gets the default of the new dataclass. To a dataclass with a required field no
    value is passed on: all its fields are given or have its defaults. The values are not checked,
    because given values may replace them.
    """
    if old is None or any(part.default is REQUIRED for part in parts(kind)):
        return {}
    before: Any = type(old)
    theirs = {part.name: part for part in parts(before)}
    shared = (
        theirs[part.name]
        for part in parts(kind)
        if part.name in theirs and theirs[part.name].hint == part.hint
    )
    values = ((part, getattr(old, part.name)) for part in shared)
    return {part.name: value for part, value in values if value != part.default}


def check_owner(part: Part, kind: type, field: str, path: str, value: Any) -> None:
    """Check that a field to be set belongs to the chosen dataclass.

    For example, `mix.law.alpha` is refused if the law is `erm`. A field that no dataclass of the
    choice has is not checked here.
    """
    owners = [
        name for name, option in part.options.items() if field in {p.name for p in parts(option)}
    ]
    if owners and kind_name(kind) not in owners:
        at = path.rpartition(part.name)[0] + part.kind_path
        forms = [spelling_of(part.options[name]) for name in owners] if at == path else []
        raise RuleError(
            f"{field} needs {at} to be {' or '.join(owners)}",
            {at: kind_name(kind), f"{path}.{field}": value},
            fields=(f"{path}.{field}", at),
            hint=f"write {at}: {' or '.join(forms)}" if 0 < len(forms) <= _MOST_FORMS else "",
        )
