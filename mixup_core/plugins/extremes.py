"""Extremes: smallest and largest values of number fields, for checks of plugins."""

import math
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from mixup_core.config.limits import Range
from mixup_core.config.parts import leaves, limits, members, unmarked
from mixup_core.plugins.fields import unlimited
from mixup_core.plugins.findings import BrokenError

_LARGE = {int: 64, float: 1000.0}
"""Value that is tried for a field without an upper bound."""


def extremes(kind: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield (path, value, is bound) for each end of the range of each number field of a class.

    If the range has no end, a large value stands for it, and `is bound` is False.
    """
    for path, leaf in leaves(kind).items():
        for value, is_bound in _ends(leaf.part.hint):
            yield path, value, is_bound


def _ends(hint: Any) -> Iterator[tuple[Any, bool]]:
    for member in members(hint):
        if get_origin(unmarked(member)) is tuple:
            yield from (
                ([value], is_bound) for value, is_bound in _ends(get_args(unmarked(member))[0])
            )
        for limit in limits(member):
            kind = unmarked(member)
            if isinstance(limit, Range) and kind in _LARGE:
                found = list(_ends_of(limit, kind))
                yield from (pair for pair in found if all(m.holds(pair[0]) for m in limits(member)))


def _ends_of(limit: Range, kind: type) -> Iterator[tuple[Any, bool]]:
    low, high, ends = limit.low, limit.high, limit.ends
    step = 1 if kind is int else min(1.0, high - low) * 0.01
    if math.isfinite(low):
        yield kind(low if ends[0] == "[" else low + step), True
    if math.isfinite(high):
        yield kind(high if ends[1] == "]" else high - step), True
    else:
        yield _LARGE[kind], False


def require_ranges(kind: Any) -> None:
    """Check that each field of a class that accepts numbers has a range.

    Raises:
        BrokenError: If one accepts every number.
    """
    if names := unlimited(kind):
        raise BrokenError(
            f"{', '.join(names)} of {kind.__name__} accepts every number; give it a type with a "
            "range, such as Share, Positive, Count, Seed or Annotated[float, Range(0, 2)]"
        )
