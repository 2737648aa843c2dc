"""Claim: a statement of a source in a testable form; `reports` computes its verdict from runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from mixup_core.rules import RuleError, require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Distinct, PlainText, Positive
from sweeps.study.readouts import ClaimReadout

Relation = Literal["less", "greater", "at_least", "at_most", "within"]
"""Allowed values of the left side: below the right side; above it; at least the right side minus
the margin; at most the right side plus the margin; within the margin of it."""

Decision = Literal["holds", "fails", "undecided"]
"""`holds` if the whole interval is allowed, `fails` if no part of it is, otherwise `undecided`."""

Side = str | float | tuple[str, ...]
"""An arm, a number, or the difference of two arms: [A, B] is A minus B."""

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
"""Metrics that ensembles have."""

_ROUNDING = 1e-9
"""Relative tolerance for rounding when numbers of a claim are compared with bounds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedComparison(Checked):
    """One comparison between arms, differences of arms or a number; paired by seed."""

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
    """Factor of the second side, which must be an arm: with 1000 the claim is about a ratio of
    1000."""
    readout: ClaimReadout | None = None
    """Read-out of the compared numbers; default: the read-out of the study."""
    together: Annotated[tuple[str, ...], Distinct()] = ()
    """Arms whose networks predict together, by the mean of their probabilities, against single
    networks of the other arms; metrics of predictions only."""
    networks: Literal[2, 3, 5, 10] | None = None
    """Number of networks, each of another seed, that predict together."""

    def check(self) -> None:
        """Check the relation and its sides.

        Raises:
            RuleError: If there is not exactly one relation, its sides or margin are unsuitable, or
                all arms cancel.
        """
        every = get_args(Relation)
        names = self._relations()
        if len(names) != 1:
            rule = f"exactly one of {', '.join(every)} must be given"
            raise RuleError(rule, dict.fromkeys(names, True), fields=(*names, *every))
        (name,), sides = names, self._sides()
        fits = len(sides) == 2 and not isinstance(sides[0], float | int)
        require(fits, f"{name} must compare [ARM, ARM or number]", self, name)
        pairs = [side for side in sides if isinstance(side, tuple)]
        fits = all(len(pair) == 2 for pair in pairs)
        require(fits, "a difference must be [ARM, ARM]", self, name)
        if name in _NEEDS_MARGIN and self.margin is None:
            other = {"at_least": "greater", "at_most": "less"}.get(name)
            hint = "write `margin:`, what still counts as equal in the unit of the metric"
            hint += f"; or `{other}` for a difference that is shown" if other else ""
            rule = f"{name} needs a margin: without one, any uncertain result would count as shown"
            raise RuleError(rule, {name: sides}, fields=(name,), hint=hint)
        fits = self.margin is None or name in _NEEDS_MARGIN
        require(fits, f"{name} must have no margin", self, "margin", name)
        fits = self.factor is None or isinstance(sides[1], str)
        require(fits, "a factor needs a second arm", self, "factor", name)
        require(bool(self.terms), "the two sides must not be the same arms", self, name)
        is_whole = bool(self.together) == (self.networks is not None)
        require(is_whole, "together and networks need each other", self, "together", "networks")
        is_named = set(self.together) <= set(self.arms)
        require(is_named, "together must name arms that are compared", self, "together", name)
        fits = not self.together or self.metric in TOGETHER
        rule = f"together needs metric to be {', '.join(TOGETHER[:-1])} or {TOGETHER[-1]}"
        require(fits, rule, self, "together", "metric")

    @property
    def relation(self) -> Relation:
        """The name of the relation."""
        return self._relations()[0]

    @property
    def left(self) -> Side:
        """The first side: an arm, or a difference of two arms."""
        return self._sides()[0]

    @property
    def right(self) -> Side:
        """The second side: an arm, a difference of two arms, or a number in the metric's unit."""
        return self._sides()[1]

    @property
    def times(self) -> float:
        """Factor of the second side, 1 by default."""
        return 1.0 if self.factor is None else self.factor

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm of the comparison, each once."""
        named: list[str] = []
        for side in self._sides():
            named += _arms_of(side)
        return tuple(dict.fromkeys(named))

    @property
    def terms(self) -> Mapping[str, float]:
        """Factor of each arm in the tested value: the left side minus the right side."""
        found: dict[str, float] = {}
        for side, sign in zip(self._sides(), (1.0, -self.times), strict=True):
            for arm, factor in zip(_arms_of(side), (sign, -sign), strict=False):
                found[arm] = found.get(arm, 0.0) + factor
        return {arm: factor for arm, factor in found.items() if factor}

    @property
    def number(self) -> float | None:
        """The right side of the comparison if it is a number, otherwise None."""
        return float(self.right) if isinstance(self.right, float | int) else None

    @property
    def allowed(self) -> tuple[float, float]:
        """The smallest and the largest value of `terms` for which the claim is true."""
        middle, margin = self.number or 0.0, self.margin or 0.0
        low = -math.inf if self.relation in ("less", "at_most") else middle - margin
        high = math.inf if self.relation in ("greater", "at_least") else middle + margin
        return low, high

    def judge(self, low: float, high: float) -> Decision:
        """Return the verdict for a confidence interval of the value of `terms`."""
        least, most = self.allowed
        if self.margin is None:
            if low > least and high < most:
                return "holds"
            return "fails" if high <= least or low >= most else "undecided"
        if low >= least and high <= most:
            return "holds"
        return "fails" if high < least or low > most else "undecided"

    def merged(self, same: Mapping[str, str]) -> Mapping[str, float]:
        """Return `terms` with one arm in place of those that compute the same.

        Args:
            same: Arm to the one that stands for it.
        """
        found: dict[str, float] = {}
        for arm, factor in self.terms.items():
            found[same.get(arm, arm)] = found.get(same.get(arm, arm), 0.0) + factor
        return {arm: factor for arm, factor in found.items() if factor}

    def settled(
        self, least: float, most: float, terms: Mapping[str, float] | None = None
    ) -> Decision | None:
        """Return the verdict that follows from the metric's bounds alone; None if runs decide it.

        `undecided` means that no interval inside the bounds can support the claim.

        Args:
            least: The smallest value that a run can have.
            most: The largest value.
            terms: The terms of the arms that differ; default: `terms`.
        """
        factors = (self.terms if terms is None else terms).values()
        ends = [sorted((factor * least, factor * most)) for factor in factors]
        low, high = (math.fsum(end[side] for end in ends) for side in (0, 1))
        low_allowed, high_allowed = self.allowed
        known = [abs(end) for end in (low, high, low_allowed, high_allowed) if math.isfinite(end)]
        rounding = _ROUNDING * max(known, default=0.0)
        if max(low, low_allowed) >= min(high, high_allowed) - rounding:
            is_beyond = low > high_allowed + rounding or high < low_allowed - rounding
            return "fails" if is_beyond else "undecided"
        is_inside = low_allowed <= low + rounding and high <= high_allowed + rounding
        return "holds" if is_inside else None

    def _relations(self) -> list[Relation]:
        return [name for name in get_args(Relation) if getattr(self, name) is not None]

    def _sides(self) -> Sides:
        sides: Sides = getattr(self, self._relations()[0])
        return sides


def _arms_of(side: Side) -> tuple[str, ...]:
    if isinstance(side, tuple):
        return side
    return (side,) if isinstance(side, str) else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim(Checked):
    """A statement of a source, to be tested with the runs."""

    says: PlainText
    """The source's sentence, in your words."""
    source: PlainText
    """Paper and location: `arXiv:2210.13512, table 1`."""
    that: StatedComparison
    """The sentence as a comparison."""
