"""Schedules: frozen dataclasses that choose the mixing law of each epoch.

Each schedule has a class variable `tag`, its name in study files, and

    last_change              first epoch (0-based) of the last phase; 0 without phases
    law_at(epoch, epochs)    the law of a 0-based epoch of a run of `epochs`
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mixup_core.laws.beta import MAX_ALPHA, MIN_ALPHA, Alpha, Beta
from mixup_core.laws.law import Law
from mixup_core.rounding import rounded
from mixup_core.rules import RuleError, require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Range


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One law of a schedule of phases, and the epoch where its phase ends."""

    law: Law
    until: int | None = None
    """First epoch (0-based) of the next phase; None means until the end of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phases(Checked):
    """A schedule of several laws, one after another: `[{law: midpoint, until: 10}, erm]`."""

    tag: ClassVar = "phases"

    phases: tuple[Phase | Law, ...]
    """The phases in order, at least one. A law without `until` lasts to the end, so it must be the
    last.
    """

    def check(self) -> None:
        """Check that every epoch has exactly one law.

        Raises:
            RuleError: If the list is empty, a phase before the last has no `until`, the last phase
                has one, or `until` does not increase.
        """
        require(len(self.phases) >= 1, "phases must not be empty", self, "phases")
        ends = [part.until if isinstance(part, Phase) else None for part in self.phases]
        before = 0
        for index, end in enumerate(ends[:-1]):
            at = {f"phases.{index}.until": end}
            if end is None:
                raise RuleError("every phase but the last needs an until", at)
            if end <= before:
                raise RuleError("each phase must end after the one before", at)
            before = end
        if ends[-1] is not None:
            raise RuleError(
                "the last phase must have no until", {f"phases.{len(ends) - 1}.until": ends[-1]}
            )

    @property
    def last_change(self) -> int:
        """First epoch (0-based) of the last phase."""
        return max((part.until or 0 for part in self.phases if isinstance(part, Phase)), default=0)

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch. `epochs` is not used."""
        del epochs
        ends = [part.until for part in self.phases if isinstance(part, Phase)]
        part = self.phases[sum(end is not None and end <= epoch for end in ends)]
        return part.law if isinstance(part, Phase) else part


@dataclass(frozen=True, kw_only=True, slots=True)
class _PowerRamp(Checked):
    """Base class: Beta(alpha) with alpha = base ** exponent and an exponent linear in the epoch.

    Source: the exponential alpha scheduler of slides on data valuation for mixup. With the
    defaults, alpha lies in [0.1, 10]; `Easy` and `Hard` reach alpha = 1 after half of the epochs.
    """

    last_change: ClassVar = 0

    base: Annotated[float, Range(1, math.inf, "()")] = 10.0
    """Base of the power that gives alpha."""
    low: float = -1.0
    """Exponent of the smallest alpha."""
    high: float = 1.0
    """Exponent of the largest alpha; above `low`."""

    def check(self) -> None:
        """Check that the exponents are ordered and in range.

        Raises:
            RuleError: If `low` is not below `high`, or alpha would leave the range of `Beta`.
        """
        require(self.low < self.high, "low < high", self, "low", "high")
        fits = all(MIN_ALPHA <= self._alpha(end) <= MAX_ALPHA for end in (self.low, self.high))
        require(fits, "1e-6 <= base ** low < base ** high <= 1e6", self, "base", "low", "high")

    def _alpha(self, exponent: float) -> float:
        try:
            return rounded(self.base**exponent)
        except OverflowError:
            return math.inf

    def _between(self, share: float) -> Law:
        """Return the law at a fraction (0 to 1) of the way from exponent `low` to `high`."""
        return Beta(alpha=self._alpha(self.low + share * (self.high - self.low)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Easy(_PowerRamp):
    """Schedule from hard to easy examples: alpha falls from base ** high to base ** low.

    With the defaults, alpha = 10^(1 - 2 u) after the fraction u of the epochs.
    """

    tag: ClassVar = "easy"

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch of a run of `epochs`, with u = epoch / epochs."""
        return self._between(1 - epoch / epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hard(_PowerRamp):
    """Schedule from easy to hard examples: alpha grows from base ** low to base ** high.

    With the defaults, alpha = 10^(2 u - 1) after the fraction u of the epochs.
    """

    tag: ClassVar = "hard"

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch of a run of `epochs`, with u = epoch / epochs."""
        return self._between(epoch / epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class EasyHardEasy(_PowerRamp):
    """Schedule in which alpha grows until half of the epochs and falls again.

    With the defaults, alpha = 10^(1 - 4 |u - 1/2|) after the fraction u of the epochs.
    """

    tag: ClassVar = "easy-hard-easy"

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch of a run of `epochs`, with u = epoch / epochs."""
        return self._between(1 - abs(2 * epoch / epochs - 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class _LogRamp(Checked):
    """Base class: Beta(alpha) with alpha between `start` and `end`, interpolated in log alpha."""

    last_change: ClassVar = 0

    start: Alpha
    """Alpha of the first epoch."""
    end: Alpha
    """Alpha that the epoch after the last one would have, which is never reached."""

    def _between(self, share: float) -> Law:
        """Return the law at a fraction (0 to 1) of the way from `start` to `end`."""
        return Beta(alpha=rounded(self.start ** (1 - share) * self.end**share))


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearRamp(_LogRamp):
    """Schedule of Beta(alpha) from `start` to `end`, linear in log alpha."""

    tag: ClassVar = "linear"

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch of a run of `epochs`."""
        return self._between(epoch / epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class CosineRamp(_LogRamp):
    """Schedule of Beta(alpha) from `start` to `end` along half a cosine in log alpha.

    Alpha changes slowly at first, then fast, then slowly again.
    """

    tag: ClassVar = "cosine"

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch of a run of `epochs`."""
        return self._between((1 - math.cos(math.pi * epoch / epochs)) / 2)


Schedule = Phases | Easy | Hard | EasyHardEasy | LinearRamp | CosineRamp
"""Union of all schedules. To add a schedule, write its class and add it here."""


def epoch_after(fraction: float, epochs: int) -> int:
    """Return `fraction * epochs`, rounded to a whole number of epochs; halves are rounded up."""
    return math.floor(fraction * epochs + 0.5)
