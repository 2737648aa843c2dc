"""Checked: base class of dataclasses that check their values when they are created."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import NoneType
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
        for limited in _limited(kind):
            limited.check(getattr(self, limited.name))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Limited:
    """One of the types of a field, with its limits."""

    name: str
    """Name of the field."""
    may_be_none: bool
    is_list: bool
    types: tuple[type, ...]
    """Python types of the values to which the limits apply."""
    of_value: tuple[Limit, ...]
    of_items: tuple[Limit, ...]
    """Limits of each item of a list."""

    def check(self, value: Any) -> None:
        applies = isinstance(value, self.types)
        if not applies or (value is None and self.may_be_none):
            return
        for limit in self.of_items:
            if wrong := [item for item in value if not limit.holds(item)]:
                raise self._error(limit, f"each of {self.name}", wrong[:_MAX_SHOWN])
        for limit in self.of_value:
            if not limit.holds(value):
                raise self._error(limit, self.name, _repeated(value) if self.is_list else value)

    def _error(self, limit: Limit, subject: str, got: Any) -> RuleError:
        return RuleError(limit.rule(subject), {self.name: got}, hint=limit.hint)


@cached_until_growth
def _limited(kind: Any) -> tuple[_Limited, ...]:
    """Return the types with limits of all fields of a dataclass; cached."""
    found = [limited for part in parts(kind) for limited in _types_of(part)]
    return tuple(limited for limited in found if limited.of_value or limited.of_items)


def _types_of(part: Part) -> Iterator[_Limited]:
    kinds = [member for member in members(part.hint) if member is not NoneType]
    for member in kinds:
        plain = unmarked(member)
        is_list = get_origin(plain) is tuple
        types = (list, tuple) if is_list else (int, float) if plain is float else (plain,)
        yield _Limited(
            name=part.name,
            may_be_none=NoneType in members(part.hint),
            is_list=is_list,
            types=types if kinds[1:] else (object,),
            of_value=limits(member),
            of_items=limits(get_args(plain)[0]) if is_list else (),
        )


def _repeated(items: Iterable[Any]) -> list[Any]:
    return [item for item, times in Counter(items).items() if times > 1][:_MAX_SHOWN]
