"""Claims: sentences of papers as testable comparisons of arms, and the looks that decide them.

`reports` computes the verdict from the runs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Distinct, PlainText, Positive, Range
from mixup_core.rules import RuleError, require
from sweeps.study.readouts import ClaimReadout

Relation = Literal["less", "greater", "at_least", "at_most", "within"]
"""Relation that a claim states between its left and its right side. `less`: left < right.
`greater`: left > right. `at_least`: left >= right - margin. `at_most`: left <= right + margin.
`within`: left and right differ by at most the margin."""

Decision = Literal["holds", "fails", "undecided"]
"""Verdict on a claim: `holds` if the claim is true for every value in the confidence interval,
`fails` if it is true for none, otherwise `undecided`."""

Side = str | float | tuple[str, ...]
"""One side of a comparison: an arm, a number, or the difference of two arms ([A, B] is A minus B).
"""

Sides = tuple[Side, ...]
"""The sides of a comparison: [left, right]."""

_NEEDS_MARGIN = ("within", "at_least", "at_most")

TOGETHER = (
    "predicted/accuracy",
    "predicted/calibration_error",
    "predicted/brier",
    "predicted/scaled_nll",
    "predicted/scaled_brier",
    "predicted/scaled_calibration_error",
)
"""Metrics that can be computed for an ensemble (the mean prediction of several networks)."""

_ROUNDING = 1e-9
"""Relative tolerance for rounding when numbers of a claim are compared with bounds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedComparison(Checked):
    """Comparison stated by a claim: of two arms, two differences of arms, or an arm and a number.

    Runs with the same seed are paired.
    """

    metric: str
    """Name of the metric, such as `test/error`."""
    less: Sides | None = None
    """[A, B]: A has the smaller value."""
    greater: Sides | None = None
    """[A, B]: A has the larger value."""
    at_least: Sides | None = None
    """[A, B]: A is not smaller than B by more than `margin`."""
    at_most: Sides | None = None
    """[A, B]: A is not larger than B by more than `margin`."""
    within: Sides | None = None
    """[A, B]: A and B differ by at most `margin`, as in "equal", "no longer helps", "fits"."""
    margin: Positive | None = None
    """Largest difference that counts as equal, in the unit of the metric."""
    factor: Positive | None = None
    """Number by which the second side, which must be an arm, is multiplied: `less: [A, B]` with
    factor 1000 states A < 1000 B. None for 1."""
    readout: ClaimReadout | None = None
    """Read-out of the compared numbers; None for the read-out of the study."""
    together: Annotated[tuple[str, ...], Distinct()] = ()
    """Arms that are evaluated as ensembles: the probabilities of several networks are averaged.
    Other arms are evaluated as single networks. Only for metrics of predictions."""
    of: Literal["variance"] | None = None
    """`variance` compares the variances over seeds instead of the means. The claim is about the
    ratio of the variance of A to that of B: `less: [A, B]` states a ratio below 1, `factor` another
    limit than 1, and `margin: 2` allows ratios from one half to two. Three seeds or more."""
    networks: Literal[2, 3, 5, 10] | None = None
    """Number of networks in an ensemble, each trained at another seed; None without `together`."""

    def check(self) -> None:
        every = get_args(Relation)
        names = self._relations()
        if len(names) != 1:
            rule = f"exactly one of {', '.join(every)} must be given"
            raise RuleError(rule, dict.fromkeys(names, True), fields=(*names, *every))
        (name,), sides = names, self.sides
        fits = len(sides) == 2 and not isinstance(sides[0], float | int)
        require(fits, f"{name} must compare [ARM, ARM or number]", self, name)
        pairs = [side for side in sides if isinstance(side, tuple)]
        fits = all(len(pair) == 2 for pair in pairs)
        require(fits, "a difference must be [ARM, ARM]", self, name)
        if name in _NEEDS_MARGIN and self.margin is None:
            alternative = {"at_least": "greater", "at_most": "less"}.get(name)
            hint = "write `margin:` in the unit of the metric"
            hint += f", or use `{alternative}` to claim a difference" if alternative else ""
            rule = f"{name} needs a margin, the largest difference that counts as equal"
            raise RuleError(rule, {name: sides}, fields=(name,), hint=hint)
        fits = self.margin is None or name in _NEEDS_MARGIN
        require(fits, f"{name} must have no margin", self, "margin", name)
        fits = self.factor is None or isinstance(sides[1], str)
        rule = "factor needs an arm as the second side, which it multiplies"
        require(fits, rule, self, "factor", name)
        require(bool(self.terms), "the two sides must not be the same arms", self, name)
        is_whole = bool(self.together) == (self.networks is not None)
        rule = "together needs networks, and networks needs together"
        require(is_whole, rule, self, "together", "networks")
        is_named = set(self.together) <= set(self.arms)
        require(is_named, "together must name arms of the comparison", self, "together", name)
        fits = not self.together or self.metric in TOGETHER
        rule = f"together needs metric to be {', '.join(TOGETHER[:-1])} or {TOGETHER[-1]}"
        require(fits, rule, self, "together", "metric")
        if self.of == "variance":
            fits = all(isinstance(side, str) for side in sides)
            require(fits, "a comparison of variances must be of two arms", self, "of", name)
            fits = not self.together
            require(fits, "a comparison of variances must have no `together`", self, "of")
            fits = self.margin is None or self.margin > 1
            rule = "a margin of a ratio of variances must be larger than 1"
            require(fits, rule, self, "margin", "of")

    @property
    def relation(self) -> Relation:
        (relation,) = self._relations()
        return relation

    @property
    def left(self) -> Side:
        return self.sides[0]

    @property
    def right(self) -> Side:
        """The second side of the comparison; a number is in the unit of the metric."""
        return self.sides[1]

    @property
    def times(self) -> float:
        return 1.0 if self.factor is None else self.factor

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm of the comparison, each once."""
        return tuple(dict.fromkeys(arm for side in self.sides for arm in _arms_of(side)))

    @property
    def terms(self) -> Mapping[str, float]:
        """Factor of each arm in left minus right side; a number shifts `allowed` instead."""
        return self.merged({})

    @property
    def number(self) -> float | None:
        return float(self.right) if isinstance(self.right, float | int) else None

    @property
    def allowed(self) -> tuple[float, float]:
        """Smallest and largest value of a claim's difference for which the claim is true.

        The difference is left minus right side; if the right side is a number, it is the left side
        alone. Of variances it is their ratio. An end without a limit is infinite.
        """
        if self.of == "variance":
            least, most = self.middle / (self.margin or 1.0), self.middle * (self.margin or 1.0)
        else:
            least, most = (self.middle + side * (self.margin or 0.0) for side in (-1, 1))
        low = -math.inf if self.relation in ("less", "at_most") else least
        high = math.inf if self.relation in ("greater", "at_least") else most
        return low, high

    @property
    def middle(self) -> float:
        """Value of a claim's difference, or ratio of variances, at which its sides are equal."""
        return self.times if self.of == "variance" else self.number or 0.0

    def judge(self, low: float, high: float) -> Decision:
        """Return the verdict, given a confidence interval of the value that `allowed` bounds."""
        least, most = self.allowed
        if self.margin is None:
            if low > least and high < most:
                return "holds"
            return "fails" if high <= least or low >= most else "undecided"
        if low >= least and high <= most:
            return "holds"
        return "fails" if high < least or low > most else "undecided"

    def merged(self, same: Mapping[str, str]) -> Mapping[str, float]:
        """Return `terms`, with arms of equal results (`same`: arm by arm) counted as one."""
        factors: dict[str, float] = {}
        times = 1.0 if self.of == "variance" else self.times
        for side, sign in ((self.left, 1.0), (self.right, -times)):
            for arm, factor in zip(_arms_of(side), (sign, -sign), strict=False):
                first = same.get(arm, arm)
                factors[first] = factors.get(first, 0.0) + factor
        return {arm: factor for arm, factor in factors.items() if factor}

    def settled(
        self, least: float, most: float, terms: Mapping[str, float] | None = None
    ) -> Decision | None:
        """Return a claim's verdict if the metric's range decides it without any run, else None.

        For example, an error in [0, 1] is always less than 2. `undecided`: of the differences that
        the claim allows, only a single one is possible, so no confidence interval can support it.
        """
        if self.of == "variance":
            return None
        factors = (self.terms if terms is None else terms).values()
        ends = [sorted((factor * least, factor * most)) for factor in factors]
        low, high = (math.fsum(end[side] for end in ends) for side in (0, 1))
        low_allowed, high_allowed = self.allowed
        finite = [abs(end) for end in (low, high, low_allowed, high_allowed) if math.isfinite(end)]
        rounding = _ROUNDING * max(finite)
        if max(low, low_allowed) >= min(high, high_allowed) - rounding:
            is_beyond = low > high_allowed + rounding or high < low_allowed - rounding
            return "fails" if is_beyond else "undecided"
        is_inside = low_allowed <= low + rounding and high <= high_allowed + rounding
        return "holds" if is_inside else None

    def _relations(self) -> list[Relation]:
        return [name for name in get_args(Relation) if getattr(self, name) is not None]

    @property
    def sides(self) -> Sides:
        sides: Sides = getattr(self, self.relation)
        return sides


def _arms_of(side: Side) -> tuple[str, ...]:
    if isinstance(side, tuple):
        return side
    return (side,) if isinstance(side, str) else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Checked):
    """A sentence of a paper, to be tested with the runs of a study."""

    says: PlainText
    """The sentence, in your own words."""
    source: PlainText
    """Paper and location: `arXiv:2210.13512, table 1`."""
    that: StatedComparison
    """The sentence as a comparison."""


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
        # Frozen: this text is stored. The looks of earlier launches would count as changed, which
        # widens the intervals of claims; tests/sweeps/study/test_claims.py fails.
        return f"{list(self.sizes)} spending {self.spending:g} futility {self.futility:g}"

    def seeds(self) -> Sequence[int]:
        return range(self.at_most)


def _spread(first: int, last: int, number: int) -> tuple[int, ...]:
    """Return the number of seeds at each of `number` looks, closer together at first."""
    parts = [(k / (number - 1)) ** _SPREAD for k in range(number)]
    return tuple(sorted({round(first + (last - first) * part) for part in parts}))
