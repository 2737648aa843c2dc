"""Short forms: notations of a dataclass of a choice in study files that do not use its own tag.

The class variable `short` of a dataclass holds its short form. Keys and flat forms use the tag.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ShortForm(ABC):
    """A notation of a dataclass of a choice that the program prefers to the tag."""

    __slots__ = ()

    @abstractmethod
    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the fields of a value in this notation; None for any other value.

        Args:
            value: The value in a study file.
            names: Names of the dataclass's fields.
        """

    @abstractmethod
    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields in this notation."""

    @abstractmethod
    def shape(self, names: Sequence[str]) -> str:
        """Return the form for messages: `{beta: {a: A, b: B}}`."""

    @abstractmethod
    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of this notation.

        Args:
            whole: JSON Schema of a mapping of all fields.
        """


@dataclass(frozen=True, slots=True)
class Under(ShortForm):
    """Fields under the tag of another dataclass: `{beta: {a: 2, b: 5}}` means a `beta-ab`."""

    tag: str

    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return the content of the tag if all its names are fields of the dataclass."""
        content = value.get(self.tag) if isinstance(value, Mapping) and len(value) == 1 else None
        is_ours = isinstance(content, Mapping) and content and set(content) <= set(names)
        return content if is_ours else None

    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields under the tag."""
        return {self.tag: dict(fields)}

    def shape(self, names: Sequence[str]) -> str:
        """Return the form for messages."""
        return f"{{{self.tag}: {{{', '.join(f'{name}: {name.upper()}' for name in names)}}}}}"

    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of the form."""
        return _mapping(properties={self.tag: whole}, required=[self.tag])


@dataclass(frozen=True, slots=True)
class Pairs(ShortForm):
    """Two lists of numbers written as one mapping: `{0.5: 0.7, 1.0: 0.3}`; any order of keys."""

    keys: str
    """Field that holds the keys, increasing."""
    values: str
    """Field that holds the value of each key."""

    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return both lists if the value is a mapping with numbers as keys."""
        del names
        if not isinstance(value, Mapping) or not value:
            return None
        try:
            pairs = sorted(((float(key), value[key]) for key in value), key=lambda pair: pair[0])
        except (TypeError, ValueError):
            return None
        return {self.keys: [key for key, _ in pairs], self.values: [part for _, part in pairs]}

    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the mapping. Its keys are text, since JSON allows no other keys."""
        pairs = zip(fields[self.keys], fields[self.values], strict=True)
        return {repr(float(key)): value for key, value in pairs}

    def shape(self, names: Sequence[str]) -> str:
        """Return the form for messages."""
        first, second = (name.upper().removesuffix("S") for name in names)
        return f"{{{first}: {second}, ...}}"

    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of the form."""
        key = {"pattern": r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"}
        item = whole["properties"][self.values]["items"]
        return {"type": "object", "minProperties": 2, "propertyNames": key,
                "additionalProperties": item}  # fmt: skip


def short_form(kind: Any) -> ShortForm | None:
    """Return the short form of a dataclass, if it has one."""
    found = getattr(kind, "short", None)
    return found if isinstance(found, ShortForm) else None


def tag_meant(kinds: Mapping[str, Any], entry: Mapping[str, Any], names: Mapping[str, Any]) -> str:
    """Return the tag that an entry with one key stands for, directly or by a short form.

    Args:
        kinds: Dataclasses by tag.
        entry: `{TAG: CONTENT}`.
        names: Names of the dataclasses' fields, by tag.
    """
    (tag,) = entry
    meant = (
        own for own, kind in kinds.items()
        if isinstance(form := short_form(kind), Under) and form.fields(entry, names[own])
    )  # fmt: skip
    return next(meant, tag)


def _mapping(*, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties,
            "required": required}  # fmt: skip
