"""Space: the parameters of a search, by dotted path, with their distributions.

The `repr` of a space is frozen, because it is part of the name of a search.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Range
from mixup_core.rules import require

MAX_GRID = 10_000
"""Largest number of points of a grid."""

GridValues = Annotated[int, Range(2, MAX_GRID)]
"""Number of grid values of a real parameter, both bounds included."""

MAX_INTEGER = 2**53
"""Largest magnitude of an integer bound; floating-point numbers are exact up to it."""

MAX_PROBED = 1_000
"""An integer parameter with at most this many values is checked at all of them, else at its bounds.
If all parameters together have more, states are not kept for points that may share epochs."""


# Frozen: names and order of the fields below. They enter the name of a search, which would start
# anew; tests/contracts/test_homes.py fails.
@dataclass(frozen=True, kw_only=True, slots=True)
class Real(Checked):
    """Distribution of a search parameter: a real number between two bounds, both included."""

    low: float
    high: float
    is_log: bool
    """True for a uniform distribution of the logarithm instead of the number."""
    num_values: GridValues | None = None
    """Number of evenly spaced values in a grid, both bounds included; None outside grids."""

    def check(self) -> None:
        fits = not self.is_log or self.low > 0
        require(fits, "low must be above 0 on a logarithmic scale", self, "low")
        require(self.low < self.high, "low < high", self, "low", "high")

    def values(self) -> tuple[float, ...] | None:
        """Return the values of a grid search, ascending; None outside grid searches."""
        if self.num_values is None:
            return None
        low, high = map(math.log, self.extremes) if self.is_log else self.extremes
        steps = (low + (high - low) * i / (self.num_values - 1) for i in range(self.num_values))
        inner = [math.exp(step) if self.is_log else step for step in steps][1:-1]
        return (self.low, *inner, self.high)

    def holds(self, value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            return False
        return self.num_values is None or value in (self.values() or ())

    @property
    def extremes(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True, kw_only=True, slots=True)
class Integer(Checked):
    """Distribution of a search parameter: an integer between two bounds, in equal steps."""

    low: int
    high: int
    step: Count = 1

    def check(self) -> None:
        fits = max(abs(self.low), abs(self.high)) <= MAX_INTEGER
        require(fits, "-2^53 <= low and high <= 2^53", self, "low", "high")
        require(self.low < self.high, "low < high", self, "low", "high")
        fits = (self.high - self.low) % self.step == 0
        rule = "step must divide high - low, so that high is a value"
        require(fits, rule, self, "low", "high", "step")

    def values(self) -> Sequence[int]:
        return range(self.low, self.high + 1, self.step)

    def holds(self, value: Any) -> bool:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return is_whole and value in self.values()

    @property
    def extremes(self) -> tuple[int, ...]:
        return self.low, self.high


@dataclass(frozen=True, kw_only=True, slots=True)
class Categorical(Checked):
    """Distribution of a search parameter: one of several unordered values."""

    choices: tuple[str | int | float | bool | None, ...]
    """Distinct values, at least one."""

    def check(self) -> None:
        fits = 0 < len(self.choices) == len(set(map(repr, self.choices)))
        require(fits, "choices must have at least one value, and none twice", self, "choices")

    def values(self) -> tuple[str | int | float | bool | None, ...]:
        return self.choices

    def holds(self, value: Any) -> bool:
        """Return True if a value is among the choices; 1, 1.0 and True are different."""
        return any(value == choice and type(value) is type(choice) for choice in self.choices)

    @property
    def extremes(self) -> tuple[str | int | float | bool | None, ...]:
        return self.choices


Distribution = Real | Integer | Categorical


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter of a search: a configuration field and the values that the search may try."""

    path: str
    """Dotted path of the field. For a setting with several options (a choice), such as `mix.law`,
    the values are the names (tags) of the options; longer paths, such as `mix.law.alpha`, are
    fields of an option."""
    distribution: Distribution
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Conditions: the values of earlier parameters, by path, for which this parameter exists."""

    def exists(self, values: Mapping[str, Any]) -> bool:
        """Return True if earlier parameters have values for which this one exists."""
        return all(path in values and values[path] in among for path, among in self.when.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """All parameters of a search; each comes after the parameters that it depends on."""

    parameters: tuple[Parameter, ...]

    def draw(self, draw: Callable[[Parameter], Any]) -> dict[str, Any]:
        """Return a point; the value of each parameter is drawn after those on which it depends."""
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.exists(values):
                values[parameter.path] = draw(parameter)
        return values

    def found_in(self, flat: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the values that a configuration gives to parameters; None if one misfits."""
        values = self.draw(lambda parameter: flat.get(parameter.path, math.nan))
        among = {parameter.path: parameter.distribution for parameter in self.parameters}
        return values if all(among[path].holds(values[path]) for path in values) else None

    @property
    def is_countable(self) -> bool:
        """True if all points of this space can be listed: no real numbers, or a grid search."""
        return all(parameter.distribution.values() is not None for parameter in self.parameters)

    @property
    def num_values(self) -> int:
        """Number of values of all parameters together, without those of real numbers."""
        return sum(len(parameter.distribution.values() or ()) for parameter in self.parameters)

    def size(self) -> int | None:
        """Return the number of points, counted up to `MAX_GRID` + 1; None if infinite."""
        if not self.is_countable:
            return None
        return sum(1 for _ in itertools.islice(self.grid(), MAX_GRID + 1))

    def grid(self) -> Iterator[dict[str, Any]]:
        """Yield every point of a space that can be listed, the last parameter varying fastest."""

        def extend(values: dict[str, Any], rest: tuple[Parameter, ...]) -> Iterator[dict[str, Any]]:
            if not rest:
                yield values
            elif not rest[0].exists(values):
                yield from extend(values, rest[1:])
            else:
                for value in rest[0].distribution.values() or ():
                    yield from extend({**values, rest[0].path: value}, rest[1:])

        return extend({}, self.parameters)

    def corners(self) -> Iterator[dict[str, Any]]:
        """Yield points that together cover every possible pair of extreme values of two parameters.

        Use them to check rules for the whole space. Integers with few values also get the values
        between their bounds, because a rule that holds at both bounds, such as that one number
        divides another, may fail between them.
        """
        extremes = [(p.path, value) for p in self.parameters for value in p.distribution.extremes]
        between = [(p.path, value) for p in self.parameters for value in _between(p.distribution)]
        pairs = itertools.combinations(extremes, 2)
        for target in (*zip(extremes), *zip(between), *pairs):
            if len(dict(target)) < len(target):
                continue  # two values of one parameter
            allowed = self._leading_to(dict(target))
            if all(allowed.values()):
                yield self.draw(partial(_first, allowed))

    def _leading_to(self, target: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        """Return values of earlier parameters for which the target exists."""
        allowed = {path: (value,) for path, value in target.items()}
        for parameter in reversed(self.parameters):  # each comes after those it depends on
            if parameter.path in allowed:
                for path, among in parameter.when.items():
                    candidates = allowed.get(path, among)
                    allowed[path] = tuple(value for value in candidates if value in among)
        return allowed

    def rank(self, values: Mapping[str, Any]) -> tuple[float, ...]:
        """Return a sort key by complexity: absent, small and early values come first."""
        return tuple(_place(p.distribution, values[p.path]) if p.path in values else -math.inf
                     for p in self.parameters)  # fmt: skip


def _place(distribution: Distribution, value: Any) -> float:
    if isinstance(distribution, Categorical):
        return distribution.choices.index(value)
    return float(value)


def _between(distribution: Distribution) -> Sequence[int]:
    """Return the values between the bounds of an integer; empty if there are too many."""
    if not isinstance(distribution, Integer) or len(distribution.values()) > MAX_PROBED:
        return ()
    return distribution.values()[1:-1]


def _first(allowed: Mapping[str, Sequence[Any]], parameter: Parameter) -> Any:
    """Return the first allowed value of a parameter, or its first extreme if all are allowed."""
    return allowed.get(parameter.path, parameter.distribution.extremes)[0]
