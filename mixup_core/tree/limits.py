"""Limits: what a field may hold beyond its type, as marks of that type."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from mixup_core.tree.parts import marks


@runtime_checkable
class Limit(Protocol):
    """A mark that says which values of a type are allowed."""

    @property
    def hint(self) -> str:
        """What to write instead, for messages; empty if there is nothing to say."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is allowed."""

    def rule(self, name: str) -> str:
        """Return the rule of a field for messages: `epochs >= 1`."""

    @property
    def keywords(self) -> dict[str, Any]:
        """What JSON Schema asks instead."""


@dataclass(frozen=True, slots=True)
class Range:
    """Marks a number between two bounds: `Annotated[float, Range(0, 1, "[)")]` is in 0 <= x < 1."""

    low: float
    high: float = math.inf
    """Included too unless `ends` says otherwise, so that by default there is no upper bound."""
    ends: Literal["[]", "[)", "(]", "()"] = "[]"
    """A square bracket where the bound is included."""
    hint: str = ""
    """What to write instead, for messages."""

    def holds(self, value: float) -> bool:
        """Return whether a number is within the bounds; NaN is in none."""
        low, high = self.low, self.high
        reaches = low < value if self.ends[0] == "(" else low <= value
        return reaches and (value < high if self.ends[1] == ")" else value <= high)

    def rule(self, name: str) -> str:
        """Return the range as a rule for messages: `epochs >= 1`, `0 < lr < inf`."""
        if self.high == math.inf and self.ends[1] == "]":
            return f"{name} {'>' if self.ends[0] == '(' else '>='} {_spelled(self.low)}"
        first, second = ("<" if end in "()" else "<=" for end in self.ends)
        return f"{_spelled(self.low)} {first} {name} {second} {_spelled(self.high)}"

    @property
    def keywords(self) -> dict[str, Any]:
        """What JSON Schema asks instead."""
        low = "minimum" if self.ends[0] == "[" else "exclusiveMinimum"
        high = "maximum" if self.ends[1] == "]" else "exclusiveMaximum"
        return {
            key: at for key, at in {low: self.low, high: self.high}.items() if math.isfinite(at)
        }


@dataclass(frozen=True, slots=True)
class Distinct:
    """Marks a list without repetitions: `Annotated[tuple[Seed, ...], Distinct(1)]`."""

    at_least: int = 0
    """Items."""
    hint: str = ""

    def holds(self, value: tuple[Any, ...]) -> bool:
        """Return whether no item stands twice, and there are enough."""
        return self.at_least <= len(value) == len(set(value))

    def rule(self, name: str) -> str:
        """Return the rule for messages."""
        return f"{name} are {f'at least {self.at_least} and ' * bool(self.at_least)}distinct"

    @property
    def keywords(self) -> dict[str, Any]:
        """What JSON Schema asks instead."""
        return {"uniqueItems": True, "minItems": self.at_least}


@dataclass(frozen=True, slots=True)
class Matching:
    """Marks text that a pattern describes: `Annotated[str, Matching("[a-z]+", "is a-z")]`."""

    pattern: str
    """Regular expression of all of the text."""
    meaning: str
    """What it asks, as a predicate of the field."""
    hint: str = ""

    def holds(self, value: str) -> bool:
        """Return whether all of a text matches."""
        return re.fullmatch(self.pattern, value) is not None

    def rule(self, name: str) -> str:
        """Return the rule for messages."""
        return f"{name} {self.meaning}"

    @property
    def keywords(self) -> dict[str, Any]:
        """What JSON Schema asks instead."""
        return {"pattern": f"^{self.pattern}$"}


Count = Annotated[int, Range(1)]
"""How many of something that must be there."""
Whole = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, math.inf, "()")]
NonNegative = Annotated[float, Range(0, math.inf, "[)")]
Share = Annotated[float, Range(0, 1)]
"""Part of a whole, from none to all of it."""
PlainText = Annotated[
    str,
    Matching(
        r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]*",
        "has no control or text-direction characters",
    ),
]
"""Text that changes nothing of how others are shown."""


def limits(hint: Any) -> Iterator[Limit]:
    """Yield the limits that a type is marked with."""
    yield from (mark for mark in marks(hint) if isinstance(mark, Limit))


def _spelled(bound: float) -> str:
    """Return a bound as people write it: `0.5`, `1e6`, `2^63-1`."""
    if isinstance(bound, int):
        is_all_ones = bound > 2**30 and bound & (bound + 1) == 0
        return f"2^{bound.bit_length()}-1" if is_all_ones else str(bound)
    return f"{bound:g}".replace("e-0", "e-").replace("e+0", "e")
