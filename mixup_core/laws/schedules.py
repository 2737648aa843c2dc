"""Schedules: frozen dataclasses that choose the mixing law of each epoch.

Each schedule has a class variable `tag`, its name in study files, and

    last_change              first epoch (0-based) of the last law, which must be below `epochs`;
                             0 for a formula, which suits any number of epochs
    law_at(epoch, epochs)    law of a 0-based epoch in a run of `epochs` epochs
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Range
from mixup_core.laws.beta import MAX_ALPHA, MIN_ALPHA, Alpha, Beta
from mixup_core.laws.law import Law
from mixup_core.rules import RuleError, require


def rounded(value: float) -> float:
    """Round a computed number to 12 significant digits, so that no last bits enter a key."""
    # Frozen: what this returns for old configurations, because keys depend on it. After a change,
    # stored results are not found; tests/golden/test_keys.py fails.
    return float(f"{value:.12g}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One of the successive laws of a run, and the epoch at which the next law begins.

    Example:
        >>> from mixup_core.laws import Midpoint
        >>> from mixup_core.laws.schedules import Phase
        >>> Phase(law=Midpoint(), until=5)
        Phase(law=Midpoint(), until=5)
    """

    law: Law
    """Law of the mixing weight in this phase."""
    until: int | None = None
    """First epoch (0-based) of the next law; None: this law lasts to the end of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phases(Checked):
    """Schedule of several laws, one after another: `[{law: midpoint, until: 10}, erm]`.

    Example:
        In a study file: `mix.schedule: {phases: [{law: midpoint, until: 5}, erm]}`.

        >>> from mixup_core.laws import Erm, Midpoint
        >>> from mixup_core.laws.schedules import Phase, Phases
        >>> schedule = Phases(phases=(Phase(law=Midpoint(), until=5), Erm()))
        >>> schedule.law_at(4, epochs=10), schedule.law_at(5, epochs=10)
        (Midpoint(), Erm())
    """

    # Frozen: each `tag`, field name and default in this file. After a change, stored results are
    # not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "phases"

    phases: tuple[Phase | Law, ...]
    """The laws in order, at least one. The last one, and only it, has no field `until`."""

    def check(self) -> None:
        require(len(self.phases) >= 1, "phases must not be empty", self, "phases")
        ends = [part.until if isinstance(part, Phase) else None for part in self.phases]
        before = 0
        for index, end in enumerate(ends[:-1]):
            at = {f"phases.{index}.until": end}
            if end is None:
                raise RuleError("each phase except the last needs the field `until`", at)
            if end <= before:
                rule = f"`until` must be above {before}, the epoch at which this phase begins"
                raise RuleError(rule, at)
            before = end
        if ends[-1] is not None:
            rule = "the last phase must not have the field `until`, because it lasts to the end"
            raise RuleError(rule, {f"phases.{len(ends) - 1}.until": ends[-1]})

    @property
    def last_change(self) -> int:
        return max((part.until or 0 for part in self.phases if isinstance(part, Phase)), default=0)

    def law_at(self, epoch: int, epochs: int) -> Law:
        del epochs
        ends = [part.until for part in self.phases if isinstance(part, Phase)]
        part = self.phases[sum(end is not None and end <= epoch for end in ends)]
        return part.law if isinstance(part, Phase) else part


@dataclass(frozen=True, kw_only=True, slots=True)
class _PowerRamp(Checked):
    """Base class of schedules of Beta(alpha, alpha) whose log alpha is piecewise linear in time.

    alpha is base ** exponent, with an exponent between `low` and `high`.

    Source: the exponential alpha scheduler of slides on data valuation for mixup. With the
    defaults, alpha lies in [0.1, 10]; `Easy` and `Hard` reach alpha = 1 after half of the epochs.
    """

    last_change: ClassVar = 0

    base: Annotated[float, Range(1, math.inf, "()")] = 10.0
    """Base of the power that gives alpha."""
    low: float = -1.0
    """Exponent of the smallest alpha, which is base ** low."""
    high: float = 1.0
    """Exponent of the largest alpha, which is base ** high; above `low`."""

    def check(self) -> None:
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
    """Schedule that ends with easy examples: alpha falls from base ** high towards base ** low.

    The law of each epoch is Beta(alpha, alpha); small alpha mixes little, which is easy. With the
    defaults, base 10 and exponents -1 to 1, alpha falls from 10 towards 0.1: after a fraction u of
    the epochs it is 10^(1 - 2 u).

    Example:
        In a study file: `mix.schedule: easy`.

        >>> from mixup_core.laws.schedules import Easy
        >>> [Easy().law_at(epoch, epochs=4).alpha for epoch in range(4)]
        [10.0, 3.16227766017, 1.0, 0.316227766017]
    """

    tag: ClassVar = "easy"

    def law_at(self, epoch: int, epochs: int) -> Law:
        return self._between(1 - epoch / epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hard(_PowerRamp):
    """Schedule that ends with hard examples: alpha grows from base ** low towards base ** high.

    The law of each epoch is Beta(alpha, alpha); large alpha mixes much, which is hard. With the
    defaults, base 10 and exponents -1 to 1, alpha grows from 0.1 towards 10: after a fraction u of
    the epochs it is 10^(2 u - 1).

    Example:
        In a study file: `mix.schedule: hard`.

        >>> from mixup_core.laws.schedules import Hard
        >>> [Hard().law_at(epoch, epochs=4).alpha for epoch in range(4)]
        [0.1, 0.316227766017, 1.0, 3.16227766017]
    """

    tag: ClassVar = "hard"

    def law_at(self, epoch: int, epochs: int) -> Law:
        return self._between(epoch / epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class EasyHardEasy(_PowerRamp):
    """Schedule in which alpha grows until half of the epochs and falls again.

    The law of each epoch is Beta(alpha, alpha); large alpha mixes much, which is hard. With the
    defaults, base 10 and exponents -1 to 1, alpha grows from 0.1 to 10 and falls back towards 0.1:
    after a fraction u of the epochs it is 10^(1 - 4 |u - 1/2|).

    Example:
        In a study file: `mix.schedule: easy-hard-easy`.

        >>> from mixup_core.laws.schedules import EasyHardEasy
        >>> [EasyHardEasy().law_at(epoch, epochs=4).alpha for epoch in range(4)]
        [0.1, 1.0, 10.0, 1.0]
    """

    tag: ClassVar = "easy-hard-easy"

    def law_at(self, epoch: int, epochs: int) -> Law:
        return self._between(1 - abs(2 * epoch / epochs - 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class _LogRamp(Checked):
    """Base class of schedules of Beta(alpha, alpha), log alpha going from `start` towards `end`."""

    last_change: ClassVar = 0

    start: Alpha
    """Alpha of the first epoch."""
    end: Alpha
    """Alpha that the schedule reaches after the last epoch, so no epoch uses it."""

    def _between(self, share: float) -> Law:
        """Return the law at a fraction (0 to 1) of the way from `start` to `end`."""
        return Beta(alpha=rounded(self.start ** (1 - share) * self.end**share))


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearRamp(_LogRamp):
    """Schedule of Beta(alpha, alpha) with alpha from `start` towards `end`, linear in log alpha.

    Example:
        In a study file: `mix.schedule: {linear: {start: 0.1, end: 10}}`.

        >>> from mixup_core.laws.schedules import LinearRamp
        >>> [LinearRamp(start=0.1, end=10.0).law_at(epoch, epochs=4).alpha for epoch in range(4)]
        [0.1, 0.316227766017, 1.0, 3.16227766017]
    """

    tag: ClassVar = "linear"

    def law_at(self, epoch: int, epochs: int) -> Law:
        return self._between(epoch / epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class CosineRamp(_LogRamp):
    """Schedule of Beta(alpha, alpha), log alpha along half a cosine from `start` towards `end`.

    Alpha changes slowly at first, then fast, then slowly again.

    Example:
        In a study file: `mix.schedule: {cosine: {start: 0.1, end: 10}}`.

        >>> from mixup_core.laws.schedules import CosineRamp
        >>> [CosineRamp(start=0.1, end=10.0).law_at(epoch, epochs=4).alpha for epoch in range(4)]
        [0.1, 0.196287759935, 1.0, 5.09456117045]
    """

    tag: ClassVar = "cosine"

    def law_at(self, epoch: int, epochs: int) -> Law:
        return self._between((1 - math.cos(math.pi * epoch / epochs)) / 2)


Schedule = Phases | Easy | Hard | EasyHardEasy | LinearRamp | CosineRamp
"""Union of all schedules. To add a schedule, write its class and add it to this union."""


def epoch_after(fraction: float, epochs: int) -> int:
    """Return `fraction * epochs`, rounded to a whole number of epochs; halves are rounded up."""
    return math.floor(fraction * epochs + 0.5)
