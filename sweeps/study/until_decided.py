"""UntilDecided: seeds that are added at planned looks until the claims are decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Distinct, Range
from mixup_core.rules import require

_SPREAD = 1.4
"""Exponent that spaces the planned looks. Of seven simulated plans, six looks from 3 to 20 seeds
with this exponent were among those that found a difference of 1 sd with few seeds on average."""

MAX_LOOKS = 20
"""Largest number of looks. More looks take longer to compute and hardly end a study sooner."""

_Number = Annotated[int, Range(2, 10_000)]
"""A number of seeds, at least 2, so that a spread can be estimated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UntilDecided(Checked):
    """Plan that adds seeds (0, 1, 2, ...) at several looks until the study's claims are decided."""

    at_least: _Number = 3
    """Number of seeds of every arm at the first look."""
    at_most: _Number
    """Number of seeds at the last look."""
    until: Literal["decided"]
    """Condition that ends the study. The only one is `decided`: all claims are decided."""
    looks: (
        Annotated[int, Range(2, MAX_LOOKS)]
        | Annotated[tuple[_Number, ...], Distinct(may_be_empty=False)]
    ) = 6
    """Number of looks, which are closer together at first; or the number of seeds at each look."""
    spending: Annotated[float, Range(0, 0.5)] = 0.45
    """Wang and Tsiatis' exponent, which spreads the error level of 5 % over the looks. 0.5: the
    same level at every look (Pocock). 0: almost none at the first looks, and at the last nearly
    that of a single look (O'Brien-Fleming)."""
    futility: Annotated[float, Range(0, 0.5)] = 0.1
    """Smallest probability, given the seeds so far, that the last look decides a claim; below it
    the claim gets no more seeds. 0 turns this rule off."""

    def check(self) -> None:
        require(self.at_least <= self.at_most, "at_least <= at_most", self, "at_least", "at_most")
        if isinstance(self.looks, tuple):
            fits = list(self.looks) == sorted(self.looks)
            require(fits, "the numbers in looks must increase", self, "looks")
            ends = self.looks[0], self.looks[-1]
            fits = ends == (self.at_least, self.at_most)
            rule = "looks must begin with at_least and end with at_most"
            require(fits, rule, self, "looks", "at_least", "at_most")
            rule = f"looks must have at most {MAX_LOOKS} numbers"
            require(len(self.looks) <= MAX_LOOKS, rule, self, "looks")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of seeds at each planned look, increasing; looks with equal numbers are merged."""
        if isinstance(self.looks, tuple):
            return self.looks
        return _spread(self.at_least, self.at_most, self.looks)

    @property
    def plan(self) -> str:
        """The settings that decide when claims are tested, and at which error levels, as text."""
        return f"{list(self.sizes)} spending {self.spending:g} futility {self.futility:g}"

    def seeds(self) -> Sequence[int]:
        """Return every seed that an arm may get, up to the last planned look."""
        return range(self.at_most)


def _spread(first: int, last: int, number: int) -> tuple[int, ...]:
    """Return the number of seeds at each of `number` looks, closer together at first."""
    parts = [(k / (number - 1)) ** _SPREAD for k in range(number)]
    return tuple(sorted({round(first + (last - first) * part) for part in parts}))
