"""Claim: a sentence of a source made checkable; its verdict is computed from runs by `reports`."""

from dataclasses import dataclass
from typing import Literal, get_args

from mixup_core.rules import RuleError, require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import PlainText, Positive
from sweeps.study.readouts import ClaimReadout

Relation = Literal["less", "greater", "at_least", "at_most", "within"]
"""`less`, `greater`: the left side differs from the right at 5 %. `at_least`, `at_most`: it is not
told to be on the other side. `within`: it lies within the margin of the right side."""

Sides = tuple[str | float, ...]
"""[ARM, ARM or number]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison(Checked):
    """One relation of an arm to another arm, paired by seed, or to a number."""

    metric: str
    """Slashed name."""
    less: Sides | None = None
    """[A, B]: A has the smaller value."""
    greater: Sides | None = None
    """[A, B]: A has the larger value."""
    at_least: Sides | None = None
    """[A, B]: A is not smaller."""
    at_most: Sides | None = None
    """[A, B]: A is not larger."""
    within: Sides | None = None
    """[A, B]: they lie within `margin` of each other."""
    margin: Positive | None = None
    """Of `within`, in the unit of the metric."""
    factor: Positive | None = None
    """The second side, then an arm, counts this many times: 1000 asks for a ratio."""
    readout: ClaimReadout | None = None
    """Which number of a run is compared; that of the study if absent."""

    def check(self) -> None:
        """Check the relation and its sides.

        Raises:
            RuleError: If there is not one, or a margin and its `within` do not stand together.
        """
        every = get_args(Relation)
        names = self._relations()
        if len(names) != 1:
            rule = f"one of {', '.join(every)} is given"
            raise RuleError(rule, dict.fromkeys(names, True), fields=(*names, *every))
        sides = self._sides()
        fits = len(sides) == 2 and isinstance(sides[0], str)
        require(fits, f"{names[0]} compares [ARM, ARM or number]", self, names[0])
        fits = (self.margin is not None) == (names == ["within"])
        require(fits, "within, and it alone, has a margin", self, "margin", names[0])
        fits = self.factor is None or isinstance(sides[1], str)
        require(fits, "a factor is of a second arm", self, "factor", names[0])

    @property
    def relation(self) -> Relation:
        """The relation that is given."""
        return self._relations()[0]

    @property
    def left(self) -> str:
        """The first side: an arm."""
        return str(self._sides()[0])

    @property
    def right(self) -> str | float:
        """The second side: an arm, or a number in the unit of the metric."""
        return self._sides()[1]

    @property
    def times(self) -> float:
        """How many times the second side counts."""
        return 1.0 if self.factor is None else self.factor

    @property
    def arms(self) -> tuple[str, ...]:
        """The sides that are arms."""
        return tuple(side for side in self._sides() if isinstance(side, str))

    def _relations(self) -> list[Relation]:
        return [name for name in get_args(Relation) if getattr(self, name) is not None]

    def _sides(self) -> Sides:
        sides: Sides = getattr(self, self._relations()[0])
        return sides


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Checked):
    """What a source says, to be checked against the runs."""

    says: PlainText
    """The source's sentence, in your words."""
    source: PlainText
    """Paper and place: `arXiv:2210.13512, table 1`."""
    that: Comparison
    """The sentence as a relation."""
