"""Checked: base of the dataclasses that keep to their limits and to rules of their own."""

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from mixup_core.rules import RuleError
from mixup_core.tree.limits import Limit, limits
from mixup_core.tree.parts import members, parts, unmarked

_MAX_SHOWN = 5
"""Wrong items of a list that a message names."""


class Checked:
    """Base of frozen dataclasses that hold only what their types and their own rules allow."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check every field by the limits of its type, then the rules that join several.

        Raises:
            RuleError: If one does not hold.
        """
        kind: Any = type(self)
        for name, limit, of, may_be_none in _limits(kind):
            value = getattr(self, name)
            if (value is None and may_be_none) or isinstance(value, tuple) != (of != "value"):
                continue
            if of != "items" and not limit.holds(value):
                got = _repeated(value) if of == "list" else value
                raise RuleError(limit.rule(name), {name: got}, hint=limit.hint)
            if of == "items" and (wrong := [item for item in value if not limit.holds(item)]):
                rule = limit.rule(f"each of {name}")
                raise RuleError(rule, {name: wrong[:_MAX_SHOWN]}, hint=limit.hint)
        self.check()

    def check(self) -> None:
        """Check what no limit says, with `mixup_core.rules.require`; nothing by default."""


_Of = Literal["value", "list", "items"]


@functools.cache
def _limits(kind: Any) -> tuple[tuple[str, Limit, _Of, bool], ...]:
    """Return each limit of each field: its name, the limit, of what of it, and if it may be None.

    Kept, because a study of 10,000 runs asks a million times.
    """
    return tuple(
        (part.name, limit, of, type(None) in members(part.hint))
        for part in parts(kind) for limit, of in _found(part.hint)
    )  # fmt: skip


def _found(hint: Any) -> Iterator[tuple[Limit, _Of]]:
    for member in members(hint):
        is_list = get_origin(unmarked(member)) is tuple
        yield from ((limit, "list" if is_list else "value") for limit in limits(member))
        if is_list:
            item, *_ = get_args(unmarked(member))
            yield from ((limit, "items") for limit in limits(item))


def _repeated(items: tuple[Any, ...]) -> list[Any]:
    return [item for item, times in Counter(items).items() if times > 1][:_MAX_SHOWN]
