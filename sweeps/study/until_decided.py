"""UntilDecided: seeds that are added, at looks planned beforehand, until the claims are decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from mixup_core.rules import require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Distinct, Range

_SPREAD = 1.4
"""Exponent of the numbers of seeds at looks that are planned for a study: six looks from 3 to 20
found a difference of 1 sd with few seeds on average, of seven sets of looks simulated."""

_Number = Annotated[int, Range(2, 10_000)]
"""A number of seeds that a spread can be estimated from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UntilDecided(Checked):
    """Seeds are counted from 0 and added, at looks planned beforehand, until claims are decided."""

    at_least: _Number = 3
    """Seeds of every arm at the first look."""
    at_most: _Number
    """Seeds at the last look."""
    until: Literal["decided"]
    """Condition that ends the study: its claims are decided."""
    looks: _Number | Annotated[tuple[_Number, ...], Distinct(may_be_empty=False)] = 6
    """Number of looks, closer to each other at first; or the numbers of seeds at them."""
    spending: Annotated[float, Range(0, 0.5)] = 0.45
    """Spread of the error level of 5 % over the looks, as Wang and Tsiatis' exponent. 0.5: the
    same level at every look (Pocock). 0: almost none at the first looks, and at the last nearly
    that of a single one (O'Brien-Fleming)."""
    futility: Annotated[float, Range(0, 0.5)] = 0.1
    """A claim gets no more seeds if the probability, given its seeds so far, that the last look
    decides it is below this. 0: never for that reason."""

    def check(self) -> None:
        """Check that the looks fit between the least and the largest number of seeds.

        Raises:
            RuleError: If they do not.
        """
        require(self.at_least <= self.at_most, "at_least <= at_most", self, "at_least", "at_most")
        if isinstance(self.looks, tuple):
            fits = list(self.looks) == sorted(self.looks)
            require(fits, "looks must increase", self, "looks")
            ends = self.looks[0], self.looks[-1]
            fits = ends == (self.at_least, self.at_most)
            rule = "looks are from at_least to at_most"
            require(fits, rule, self, "looks", "at_least", "at_most")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of seeds at each look, rising; fewer looks where two would be the same."""
        if isinstance(self.looks, tuple):
            return self.looks
        return _spread(self.at_least, self.at_most, self.looks)

    @property
    def plan(self) -> str:
        """Text that decides the levels of all looks: another plan gives other levels."""
        return f"{list(self.sizes)} spending {self.spending:g} futility {self.futility:g}"

    def seeds(self) -> Sequence[int]:
        """Return every seed that an arm may get."""
        return range(self.at_most)


def _spread(first: int, last: int, number: int) -> tuple[int, ...]:
    """Return so many numbers of seeds from the first to the last, closer together at first."""
    parts = [(k / (number - 1)) ** _SPREAD for k in range(number)]
    return tuple(sorted({round(first + (last - first) * part) for part in parts}))
