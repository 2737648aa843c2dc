"""Short forms: notations in study files that stand for a dataclass without its own tag.

For example, the law with the tag `beta-ab` is written `{beta: {a: 2, b: 5}}`.

The class variable `short` of a dataclass is its short form. Run keys and stage keys are computed
from the tag instead, and values by dotted path use the tag: `mix.law: beta-ab`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ShortForm(ABC):
    """Base class of notations that stand for a dataclass without using its own tag.

    For example, `{beta: {a: 2, b: 5}}` in a study file stands for the law with the tag `beta-ab`.
    """

    __slots__ = ()

    @abstractmethod
    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        """Return a dataclass's values, by field, from this short form; None for other notations.

        The parser of study files calls this method for each value of a field that can hold the
        dataclass.
        """

    @abstractmethod
    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a dataclass, given as values by field, in this short form for a study file."""

    @abstractmethod
    def shape(self, names: Sequence[str]) -> str:
        """Return the pattern of this short form for messages, such as `{beta: {a: A, b: B}}`."""

    @abstractmethod
    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of values in this short form."""


@dataclass(frozen=True, slots=True)
class Under(ShortForm):
    """Short form that uses another dataclass's tag: `{beta: {a: 2, b: 5}}` is the law `beta-ab`."""

    tag: str

    def fields(self, value: Any, names: Sequence[str]) -> Mapping[str, Any] | None:
        content = value.get(self.tag) if isinstance(value, Mapping) and len(value) == 1 else None
        is_ours = isinstance(content, Mapping) and content and set(content) <= set(names)
        return content if is_ours else None

    def written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {self.tag: dict(fields)}

    def shape(self, names: Sequence[str]) -> str:
        return f"{{{self.tag}: {{{', '.join(f'{name}: {name.upper()}' for name in names)}}}}}"

    def schema(self, whole: dict[str, Any]) -> dict[str, Any]:
        return _mapping(properties={self.tag: whole}, required=[self.tag])


@dataclass(frozen=True, slots=True)
class Pairs(ShortForm):
    """Short form of a dataclass with two lists of numbers: a mapping from the first to the second.

    `{0.5: 0.7, 1.0: 0.3}` means the lists [0.5, 1.0] and [0.7, 0.3]; its order does not matter.
    """

    keys: str
    """Name of the field that holds the mapping's keys, increasing."""
    values: str
    """Name of the field that holds the value of each key."""

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


def short_form(kind: Any) -> ShortForm | None:
    """Return a dataclass's short form, a second notation in study files; None if it has none."""
    found = getattr(kind, "short", None)
    return found if isinstance(found, ShortForm) else None


def tag_meant(kinds: Mapping[str, Any], entry: Mapping[str, Any], names: Mapping[str, Any]) -> str:
    """Return the tag of the dataclass that `{TAG: CONTENT}` stands for.

    The tag is TAG itself, unless the content is a short form of another dataclass:
    `{beta: {a: 2, b: 5}}` gives `beta-ab`.
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
