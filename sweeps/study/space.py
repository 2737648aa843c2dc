"""Space: the parameters of a search, by dotted path, with their distributions."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from mixup_core.rules import require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count, Range

MAX_GRID = 10_000
"""Largest number of points of a grid."""

GridValues = Annotated[int, Range(2, MAX_GRID)]
"""Number of grid values of a real number, both bounds included."""

MAX_INTEGER = 2**53
"""Largest magnitude of an integer bound; floating-point numbers are exact up to it."""

_MAX_PROBED = 1_000
"""Integers with at most so many values are checked at each value, others at the bounds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Real(Checked):
    """A real number between two bounds, both included."""

    low: float
    high: float
    is_log: bool
    """True if the logarithm is uniform instead of the number."""
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
        """Return the grid values in ascending order; None without a grid."""
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
    """An integer between two bounds, both included, at equal steps."""

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
        require(fits, "step must divide high - low", self, "low", "high", "step")

    def values(self) -> Sequence[int]:
        """Return all values in ascending order, as a range."""
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
    """One of several unordered values."""

    choices: tuple[str | int | float | bool | None, ...]
    """Distinct values, at least one."""

    def check(self) -> None:
        """Check the choices.

        Raises:
            RuleError: If there is none, or one appears twice.
        """
        fits = 0 < len(self.choices) == len(set(map(repr, self.choices)))
        require(fits, "choices must be distinct, at least one", self, "choices")

    def values(self) -> tuple[str | int | float | bool | None, ...]:
        """Return all values in the order of the file."""
        return self.choices

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        return any(value == choice and type(value) is type(choice) for choice in self.choices)

    @property
    def extremes(self) -> tuple[str | int | float | bool | None, ...]:
        """Return all values."""
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
    """Conditions: path of an earlier parameter to the values for which this parameter exists."""

    def exists(self, values: Mapping[str, Any]) -> bool:
        """Return whether this parameter exists for the given values of earlier parameters."""
        return all(path in values and values[path] in among for path, among in self.when.items())


class Draw(Protocol):
    """Function that draws the value of a parameter."""

    def __call__(self, parameter: Parameter) -> Any:
        """Return a value that the distribution of the parameter allows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """Parameters of a search; a parameter stands after those it depends on."""

    parameters: tuple[Parameter, ...]

    def draw(self, draw: Draw) -> dict[str, Any]:
        """Return the values of one point, each parameter drawn after those it depends on."""
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.exists(values):
                values[parameter.path] = draw(parameter)
        return values

    def found_in(self, flat: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the point at which a configuration lies; None if it lies at no point.

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
        """True if the points can be enumerated; of a real number, its grid values count."""
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
        """Yield points that together contain every possible pair of extremes.

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
        """Return values of earlier parameters for which the target can exist; empty if none."""
        allowed = {path: (value,) for path, value in target.items()}
        for parameter in reversed(self.parameters):  # those it depends on come before it
            if parameter.path in allowed:
                for path, among in parameter.when.items():
                    known = allowed.get(path, among)
                    allowed[path] = tuple(value for value in known if value in among)
        return allowed

    def rank(self, values: Mapping[str, Any]) -> tuple[float, ...]:
        """Return a sort key that orders points from simple to complicated.

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
    """Return the values between the bounds of an integer, if they are few."""
    if not isinstance(distribution, Integer) or len(distribution.values()) > _MAX_PROBED:
        return ()
    return distribution.values()[1:-1]


@dataclass(frozen=True, slots=True)
class _Among:
    """Draws first values, of some parameters among given ones."""

    allowed: Mapping[str, Sequence[Any]]

    def __call__(self, parameter: Parameter) -> Any:
        return self.allowed.get(parameter.path, parameter.distribution.extremes)[0]
