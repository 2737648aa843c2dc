"""Limits: restrictions of a field's values, written in its type as `Annotated[type, limit]`."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal


class Limit(ABC):
    """Base class of restrictions of a field's values."""

    __slots__ = ()

    hint: str = ""
    """Advice at the end of messages, for example which value to write instead."""

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Return True if this limit allows a value; `Checked` calls this to check a field."""

    @abstractmethod
    def rule(self, name: str) -> str:
        """Return this limit of a field as a rule for messages, such as `epochs >= 1`."""

    @property
    @abstractmethod
    def keywords(self) -> dict[str, Any]:
        """This limit in JSON Schema, for example `{"minimum": 1}`."""


@dataclass(frozen=True, slots=True)
class Range(Limit):
    """Limit of numbers to an interval: `Annotated[float, Range(0, 1, "[)")]` means 0 <= x < 1."""

    low: float
    high: float = math.inf
    """Upper bound. By default it is infinity, and included."""
    ends: Literal["[]", "[)", "(]", "()"] = "[]"
    """Brackets of the interval; a square bracket includes the bound."""
    hint: str = ""

    def holds(self, value: float) -> bool:
        """Return whether a number is within the bounds of this range; NaN never is."""
        low, high = self.low, self.high
        reaches = low < value if self.ends[0] == "(" else low <= value
        return reaches and (value < high if self.ends[1] == ")" else value <= high)

    def rule(self, name: str) -> str:
        """Return this range as a rule for messages: `epochs >= 1`, `0 < lr < inf`."""
        if self.low == self.high:
            return f"{name} == {_spelled(self.low)}"
        if self.high == math.inf and self.ends[1] == "]":
            return f"{name} {'>' if self.ends[0] == '(' else '>='} {_spelled(self.low)}"
        first, second = ("<" if end in "()" else "<=" for end in self.ends)
        return f"{_spelled(self.low)} {first} {name} {second} {_spelled(self.high)}"

    @property
    def keywords(self) -> dict[str, Any]:
        """This limit in JSON Schema, for example `{"minimum": 1}`."""
        low = "minimum" if self.ends[0] == "[" else "exclusiveMinimum"
        high = "maximum" if self.ends[1] == "]" else "exclusiveMaximum"
        return {
            key: at for key, at in {low: self.low, high: self.high}.items() if math.isfinite(at)
        }

    @property
    def inside(self) -> float:
        """Example of a number in this range: 1 if allowed, else one near a bound, or the middle."""
        near = (1, self.low, self.low + 1, self.high, self.high - 1, (self.low + self.high) / 2)
        return next(number for number in near if math.isfinite(number) and self.holds(number))


@dataclass(frozen=True, slots=True)
class Distinct(Limit):
    """Limit of lists to distinct items: `Annotated[tuple[Seed, ...], Distinct()]`."""

    may_be_empty: bool = True

    def holds(self, value: Collection[Any]) -> bool:
        """Return True if all items of a list differ; an empty list is allowed if `may_be_empty`."""
        return len(value) == len(set(value)) and (self.may_be_empty or len(value) > 0)

    def rule(self, name: str) -> str:
        """Return this limit as a rule for messages: `items of seeds must be distinct`."""
        at_least = "" if self.may_be_empty else ", and there must be at least one"
        return f"items of {name} must be distinct{at_least}"

    @property
    def keywords(self) -> dict[str, Any]:
        """This limit in JSON Schema, for example `{"uniqueItems": True}`."""
        return {"uniqueItems": True} | ({} if self.may_be_empty else {"minItems": 1})


@dataclass(frozen=True, slots=True)
class Matching(Limit):
    """Limit of text to a pattern: `Annotated[str, Matching("[a-z]+", "be a to z")]`."""

    pattern: str
    """Regular expression that the whole text must match."""
    meaning: str
    """The limit in words that complete the sentence `FIELD must ...`."""

    def holds(self, value: str) -> bool:
        """Return whether a value is allowed: the whole text must match a regular expression."""
        return re.fullmatch(self.pattern, value) is not None

    def rule(self, name: str) -> str:
        """Return this limit as a rule for messages: `name must be a to z`."""
        return f"{name} must {self.meaning}"

    @property
    def keywords(self) -> dict[str, Any]:
        """This limit in JSON Schema, for example `{"pattern": "^(?:[a-z]+)$"}`."""
        return {"pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True, slots=True)
class Among(Limit):
    """Limit of text to given names: `Annotated[str, Among(("digits", "mnist"))]`."""

    names: Collection[str] = field(hash=False)

    def holds(self, value: str) -> bool:
        """Return whether a text is one of the names that this limit allows."""
        return value in self.names

    def rule(self, name: str) -> str:
        """Return this limit as a rule for messages: `name must be one of digits, mnist`."""
        return f"{name} must be one of {', '.join(self.names)}"

    @property
    def keywords(self) -> dict[str, Any]:
        """This limit in JSON Schema, for example `{"enum": ["digits", "mnist"]}`."""
        return {"enum": list(self.names)}


Count = Annotated[int, Range(1)]
"""Type of counts that are at least 1."""
Whole = Annotated[int, Range(0)]
"""Type of counts that may be 0, and of 0-based indices."""
Positive = Annotated[float, Range(0, math.inf, "()")]
"""Type of positive, finite numbers."""
NonNegative = Annotated[float, Range(0, math.inf, "[)")]
"""Type of non-negative, finite numbers."""
Share = Annotated[float, Range(0, 1)]
"""Type of fractions, from 0 to 1."""
PlainText = Annotated[
    str,
    Matching(
        r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]*",
        "not contain control or text-direction characters",
    ),
]
"""Type of text without control characters or characters that change the direction of text."""


def _spelled(bound: float) -> str:
    """Return a bound as people write it: `0.5`, `1e6`, `2^63-1`."""
    if isinstance(bound, int):
        is_all_ones = bound > 2**30 and bound & (bound + 1) == 0
        return f"2^{bound.bit_length()}-1" if is_all_ones else str(bound)
    brief = f"{bound:g}".replace("e-0", "e-").replace("e+0", "e")
    return brief if float(brief) == bound else repr(bound)
