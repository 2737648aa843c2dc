"""Checked: base class of dataclasses that check their values when they are created."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from mixup_core.config.catalogue import cached_until_growth
from mixup_core.config.limits import Limit
from mixup_core.config.parts import Part, limits, members, parts, unmarked
from mixup_core.rules import RuleError

_MAX_SHOWN = 5
"""Maximum number of wrong list items that a message shows."""


class Checked:
    """Base class of frozen dataclasses that check the limits of their fields and their own rules.

    Limits are written as `Annotated[type, limit]`, also for the items of a list and the types in a
    union. A union in which types have limits may contain only one list type.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the limits of every field, then the rules that involve several fields."""
        kind: Any = type(self)
        for field in _limited(kind):
            field.check(getattr(self, field.name))
        self.check()

    def check(self) -> None:
        """Check rules between several fields of this dataclass, with `mixup_core.rules.require`.

        Subclasses override this method. It is called once each field is known to be within its
        limits.

        Example:
            >>> from mixup_core.laws import Truncated
            >>> Truncated(alpha=1.0, low=0.8, high=0.2)
            Traceback (most recent call last):
                ...
            mixup_core.rules.RuleError: `low < high` must hold, got (low=0.8, high=0.2).
        """


@cached_until_growth
def _limited(kind: Any) -> "tuple[_Limited, ...]":
    """Return the fields of a dataclass that have limits; cached."""
    fields = map(_field, parts(kind))
    return tuple(field for field in fields if field.of_value or field.of_list or field.of_items)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Limited:
    """A field of a dataclass with the limits of its type."""

    name: str
    may_be_none: bool
    lists: tuple[type, ...]
    """Types of the values that are checked as lists."""
    of_value: tuple[tuple[tuple[type, ...], Limit], ...]
    """Limits of values that are not lists, each with the types it applies to."""
    of_list: tuple[Limit, ...]
    of_items: tuple[Limit, ...]

    def check(self, value: Any) -> None:
        if (value is None and self.may_be_none) or isinstance(value, Checked):
            return
        is_list = isinstance(value, self.lists)
        for limit in self.of_items if is_list else ():
            if wrong := [item for item in value if not limit.holds(item)]:
                raise self._error(limit, f"each of {self.name}", wrong[:_MAX_SHOWN])
        of_value = (limit for types, limit in self.of_value if isinstance(value, types))
        for limit in self.of_list if is_list else of_value:
            if not limit.holds(value):
                raise self._error(limit, self.name, _repeated(value) if is_list else value)

    def _error(self, limit: Limit, subject: str, got: Any) -> RuleError:
        return RuleError(limit.rule(subject), {self.name: got}, hint=limit.hint)


def _field(part: Part) -> _Limited:
    kinds = [member for member in members(part.hint) if member is not type(None)]
    lists = [member for member in kinds if get_origin(unmarked(member)) is tuple]
    items = [get_args(unmarked(member))[0] for member in lists]
    values = [(member, _types(member, kinds)) for member in kinds if member not in lists]
    listed = (list, tuple) if values else (object,)
    return _Limited(
        name=part.name,
        may_be_none=type(None) in members(part.hint),
        lists=listed if lists else (),
        of_value=tuple((types, limit) for member, types in values for limit in limits(member)),
        of_list=tuple(limit for hint in lists for limit in limits(hint)),
        of_items=tuple(limit for hint in items for limit in limits(hint)),
    )


def _types(member: Any, kinds: list[Any]) -> tuple[type, ...]:
    """Return the Python types to whose values the limits of one member of a union apply."""
    if len(kinds) == 1:
        return (object,)
    plain = unmarked(member)
    return (int, float) if plain is float else (plain,)


def _repeated(items: Iterable[Any]) -> list[Any]:
    return [item for item, times in Counter(items).items() if times > 1][:_MAX_SHOWN]
