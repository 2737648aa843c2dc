"""Space: the dotted paths that a search may choose, and the values they may take."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from mixup_core.rules import require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count, Range

MAX_GRID = 10_000
"""Points of a grid."""

GridValues = Annotated[int, Range(2, MAX_GRID)]
"""Number of values that a grid takes between two bounds, both included."""

MAX_INTEGER = 2**53
"""Magnitude of a bound: samplers compute with floating-point numbers, exact up to here."""

_MAX_PROBED = 1_000
"""Values of an integer that are all tried when a space is checked; of more, the bounds are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Real(Checked):
    """A real number between two bounds, both included."""

    low: float
    high: float
    is_log: bool
    """Whether the logarithm is drawn evenly, instead of the number."""
    num_values: GridValues | None = None
    """Number of evenly spaced values that a grid takes, both bounds included; None outside grids.
    """

    def check(self) -> None:
        """Check the bounds.

        Raises:
            RuleError: If the bounds are out of order, or a logarithm does not exist.
        """
        require(not self.is_log or self.low > 0, "low > 0 under a logarithm", self, "low")
        require(self.low < self.high, "low < high", self, "low", "high")

    def values(self) -> tuple[float, ...] | None:
        """Return the values of a grid, upwards; None if there is no grid."""
        if self.num_values is None:
            return None
        low, high = (math.log(self.low), math.log(self.high)) if self.is_log else self.bounds
        steps = (low + (high - low) * i / (self.num_values - 1) for i in range(self.num_values))
        inner = [math.exp(step) if self.is_log else step for step in steps][1:-1]
        return (self.low, *inner, self.high)

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            return False
        return self.num_values is None or value in (self.values() or ())

    @property
    def bounds(self) -> tuple[float, float]:
        """Both bounds."""
        return self.low, self.high

    @property
    def extremes(self) -> tuple[float, ...]:
        """Values between which all others lie."""
        return self.bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Integer(Checked):
    """An integer between two bounds, both included, in steps."""

    low: int
    high: int
    step: Count = 1

    def check(self) -> None:
        """Check bounds and step.

        Raises:
            RuleError: If the bounds are out of order or too large, or the step does not lead from
                one to the other.
        """
        fits = max(abs(self.low), abs(self.high)) <= MAX_INTEGER
        require(fits, "-2^53 <= low and high <= 2^53", self, "low", "high")
        require(self.low < self.high, "low < high", self, "low", "high")
        fits = (self.high - self.low) % self.step == 0
        require(fits, "step divides high - low", self, "low", "high", "step")

    def values(self) -> Sequence[int]:
        """Return every value, upwards, without listing them."""
        return range(self.low, self.high + 1, self.step)

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return is_whole and value in self.values()

    @property
    def extremes(self) -> tuple[int, ...]:
        """Values between which all others lie."""
        return self.low, self.high


@dataclass(frozen=True, kw_only=True, slots=True)
class Categorical(Checked):
    """One of several values without an order of their own."""

    choices: tuple[str | int | float | bool | None, ...]
    """Distinct, at least one."""

    def check(self) -> None:
        """Check the choices.

        Raises:
            RuleError: If there is none, or one appears twice.
        """
        fits = 0 < len(self.choices) == len(set(map(repr, self.choices)))
        require(fits, "choices are distinct and at least one", self, "choices")

    def values(self) -> tuple[str | int | float | bool | None, ...]:
        """Return every value, in the order of the file."""
        return self.choices

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        return any(value == choice and type(value) is type(choice) for choice in self.choices)

    @property
    def extremes(self) -> tuple[str | int | float | bool | None, ...]:
        """Return every value: nothing lies between."""
        return self.choices


Distribution = Real | Integer | Categorical


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A dotted path whose value a search chooses."""

    path: str
    """Path of a value of the configuration; of a choice told apart by tag, the tag stands at its
    own path and its fields below."""
    distribution: Distribution
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Path of an earlier parameter to those of its values under which this one exists."""

    def exists(self, values: Mapping[str, Any]) -> bool:
        """Return whether the earlier values of a point leave room for this parameter."""
        return all(path in values and values[path] in among for path, among in self.when.items())


class Draw(Protocol):
    """Gives the value of a parameter that exists."""

    def __call__(self, parameter: Parameter) -> Any:
        """Return a value that the distribution of the parameter allows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """What a search may choose: parameters, those that others depend on before these."""

    parameters: tuple[Parameter, ...]

    def draw(self, draw: Draw) -> dict[str, Any]:
        """Return the values of one point, each parameter drawn after those it depends on."""
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.exists(values):
                values[parameter.path] = draw(parameter)
        return values

    def found_in(self, flat: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the point that a configuration lies at; None if it lies at none.

        Args:
            flat: Dotted path to value, paths that no parameter has included.
        """
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.exists(values):
                if parameter.path not in flat or not parameter.distribution.holds(
                    flat[parameter.path]
                ):
                    return None
                values[parameter.path] = flat[parameter.path]
        return values

    @property
    def is_countable(self) -> bool:
        """Whether the points can be listed; a real number with grid values counts as these."""
        return all(parameter.distribution.values() is not None for parameter in self.parameters)

    def size(self) -> int | None:
        """Return the number of points, counted up to `MAX_GRID` + 1; None if uncountable."""
        if not self.is_countable:
            return None
        return sum(1 for _ in itertools.islice(self.grid(), MAX_GRID + 1))

    def grid(self) -> Iterator[dict[str, Any]]:
        """Yield every point of a countable space, the last parameter changing fastest."""

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
        """Yield points that together take any two extremes that can stand in one point.

        Integers take their other values too, unless they have very many: a rule that holds at both
        ends, such as that one number divides another, may fail between them.
        """
        extremes = [(p.path, value) for p in self.parameters for value in p.distribution.extremes]
        between = [(p.path, value) for p in self.parameters for value in _between(p.distribution)]
        pairs = itertools.combinations(extremes, 2)
        for target in (*zip(extremes), *zip(between), *pairs):
            if len(dict(target)) < len(target):
                continue  # two values of one parameter
            allowed = self._leading_to(dict(target))
            if all(allowed.values()):
                yield self.draw(_Among(allowed))

    def _leading_to(self, target: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        """Return what values let a point have those of the target; none if nothing does."""
        allowed = {path: (value,) for path, value in target.items()}
        for parameter in reversed(self.parameters):  # those it depends on come before it
            if parameter.path in allowed:
                for path, among in parameter.when.items():
                    known = allowed.get(path, among)
                    allowed[path] = tuple(value for value in known if value in among)
        return allowed

    def rank(self, values: Mapping[str, Any]) -> tuple[float, ...]:
        """Return what points are sorted by from simple to complicated.

        Parameters count in the order of the file, small numbers and early choices first; a
        parameter that does not exist comes before all of its values.
        """
        return tuple(_place(p.distribution, values[p.path]) if p.path in values else -math.inf
                     for p in self.parameters)  # fmt: skip


def _place(distribution: Distribution, value: Any) -> float:
    if isinstance(distribution, Categorical):
        return distribution.choices.index(value)
    return float(value)


def _between(distribution: Distribution) -> Sequence[int]:
    """Return the values between the bounds of an integer that has not very many."""
    if not isinstance(distribution, Integer) or len(distribution.values()) > _MAX_PROBED:
        return ()
    return distribution.values()[1:-1]


@dataclass(frozen=True, slots=True)
class _Among:
    """Draws first values, of some parameters among given ones."""

    allowed: Mapping[str, Sequence[Any]]

    def __call__(self, parameter: Parameter) -> Any:
        return self.allowed.get(parameter.path, parameter.distribution.extremes)[0]
