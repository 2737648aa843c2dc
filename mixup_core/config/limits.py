"""Limits: restrictions of a field's values, written in its type as `Annotated[type, limit]`."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal


class Limit(ABC):
    """Base class of restrictions of a field's values, such as `Range`."""

    __slots__ = ()

    hint: str = ""
    """Advice at the end of messages, for example which value to write instead."""

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Return True if this limit allows a value; `Checked` calls this to check a field."""

    @abstractmethod
    def rule(self, name: str) -> str:
        """Return this limit as text about a field of this name, for messages: `epochs >= 1`."""

    @property
    @abstractmethod
    def keywords(self) -> dict[str, Any]:
        """Keywords of JSON Schema that express this limit, such as `{"minimum": 1}`."""


@dataclass(frozen=True, slots=True)
class Range(Limit):
    """Limit of numbers to an interval: `Annotated[float, Range(0, 1, "[)")]` means 0 <= x < 1.

    By default both bounds are included, and the upper bound is infinity.

    Example:
        >>> from mixsweep.plugins import Range
        >>> Range(0, 1, "[)").holds(1), Range(1).holds(1)
        (False, True)
    """

    low: float
    high: float = math.inf
    """Upper bound. By default it is infinity, and included."""
    ends: Literal["[]", "[)", "(]", "()"] = "[]"
    """Brackets of the interval; a square bracket includes the bound."""
    hint: str = ""

    def holds(self, value: float) -> bool:
        low, high = self.low, self.high
        reaches = low < value if self.ends[0] == "(" else low <= value
        return reaches and (value < high if self.ends[1] == ")" else value <= high)

    def rule(self, name: str) -> str:
        if self.low == self.high:
            return f"{name} == {_spelled(self.low)}"
        if self.high == math.inf and self.ends[1] == "]":
            return f"{name} {'>' if self.ends[0] == '(' else '>='} {_spelled(self.low)}"
        first, second = ("<" if end in "()" else "<=" for end in self.ends)
        return f"{_spelled(self.low)} {first} {name} {second} {_spelled(self.high)}"

    @property
    def keywords(self) -> dict[str, Any]:
        low = {"[": "minimum", "(": "exclusiveMinimum"}[self.ends[0]]
        high = {"]": "maximum", ")": "exclusiveMaximum"}[self.ends[1]]
        return {
            key: end for key, end in {low: self.low, high: self.high}.items() if math.isfinite(end)
        }

    @property
    def inside(self) -> float:
        """Example of a number in this range.

        The candidates are 1, low, low + 1, high, high - 1 and the middle; the first that is finite
        and in the range is used.

        Example:
            >>> from mixsweep.plugins import Range
            >>> Range(0, 1, "()").inside, Range(5).inside
            (0.5, 5)
        """
        near = (1, self.low, self.low + 1, self.high, self.high - 1, (self.low + self.high) / 2)
        return next(number for number in near if math.isfinite(number) and self.holds(number))


@dataclass(frozen=True, slots=True)
class Distinct(Limit):
    """Limit of lists to distinct items: `Annotated[tuple[Seed, ...], Distinct()]`.

    An empty list is allowed unless `may_be_empty=False`.

    Example:
        >>> from typing import Annotated
        >>> from mixsweep.plugins import Count, Distinct
        >>> Layers = Annotated[tuple[Count, ...], Distinct(may_be_empty=False)]
    """

    may_be_empty: bool = True

    def holds(self, value: Collection[Any]) -> bool:
        return len(value) == len(set(value)) if value else self.may_be_empty

    def rule(self, name: str) -> str:
        at_least = "" if self.may_be_empty else ", and there must be at least one"
        return f"items of {name} must be distinct{at_least}"

    @property
    def keywords(self) -> dict[str, Any]:
        return {"uniqueItems": True} | ({} if self.may_be_empty else {"minItems": 1})


@dataclass(frozen=True, slots=True)
class Matching(Limit):
    """Limit of text to a regular expression: `Annotated[str, Matching("[a-z]+", "be a to z")]`.

    The second argument ends the message `FIELD must ...`.

    Example:
        >>> from mixsweep.plugins import Matching
        >>> Matching("[a-z]+", "be a to z").holds("resnet18")
        False
    """

    pattern: str
    """Regular expression that the whole text must match."""
    meaning: str
    """The limit in words that complete the sentence `FIELD must ...`."""

    def holds(self, value: str) -> bool:
        return re.fullmatch(self.pattern, value) is not None

    def rule(self, name: str) -> str:
        return f"{name} must {self.meaning}"

    @property
    def keywords(self) -> dict[str, Any]:
        return {"pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True, slots=True)
class Among(Limit):
    """Limit of text to given names: `Annotated[str, Among(("digits", "mnist"))]`.

    Example:
        >>> from mixsweep.plugins import Among
        >>> Among(("digits", "mnist")).holds("svhn")
        False
    """

    names: Collection[str] = field(hash=False)

    def holds(self, value: str) -> bool:
        return value in self.names

    def rule(self, name: str) -> str:
        return f"{name} must be one of {', '.join(self.names)}"

    @property
    def keywords(self) -> dict[str, Any]:
        return {"enum": list(self.names)}


Count = Annotated[int, Range(1)]
"""Type of counts that are at least 1.

Example:
    >>> from mixup_core.images.probes.norms import WeightNorm
    >>> WeightNorm(every=0)  # `every` is a `Count` or None
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `every >= 1` must hold, got (every=0).
"""
Whole = Annotated[int, Range(0)]
"""Type of counts that may be 0, and of 0-based indices.

Example:
    >>> from mixup_core.images.choices.optimizers import Cosine
    >>> Cosine(warm_up=-1)  # `warm_up` is a `Whole`
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `warm_up >= 0` must hold, got (warm_up=-1).
"""
Positive = Annotated[float, Range(0, math.inf, "()")]
"""Type of positive, finite numbers.

Example:
    >>> from mixup_core.images.choices.optimizers import Sgd
    >>> Sgd(clip_norm=0.0)  # `clip_norm` is a `Positive` or None
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `0 < clip_norm < inf` must hold, got (clip_norm=0.0).
"""
NonNegative = Annotated[float, Range(0, math.inf, "[)")]
"""Type of non-negative, finite numbers.

Example:
    >>> from mixup_core.images.choices.optimizers import Sgd
    >>> Sgd(weight_decay=-0.1)  # `weight_decay` is a `NonNegative`
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `0 <= weight_decay < inf` must hold, got (weight_decay=-0.1).
"""
Share = Annotated[float, Range(0, 1)]
"""Type of fractions, from 0 to 1.

Example:
    >>> from mixup_core.images.losses import CrossEntropy
    >>> CrossEntropy(smoothing=1.5)  # `smoothing` is a `Share`
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `0 <= smoothing <= 1` must hold, got (smoothing=1.5).
"""
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
        bits = bound.bit_length()
        return f"2^{bits}-1" if bits > 30 and bound == 2**bits - 1 else str(bound)
    brief = f"{bound:g}".replace("e-0", "e-").replace("e+0", "e")
    return brief if float(brief) == bound else repr(bound)
