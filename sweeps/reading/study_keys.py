"""The keys of a study file as types: what each section may hold, and its own rules."""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, get_args

from mixup_core.problem import DEFAULT_PROBLEM, MAX_SEED, PROBLEMS
from mixup_core.rules import RuleError, require
from mixup_core.tree.parts import Among
from sweeps.budget import Budget
from sweeps.claims import Claim, Relation
from sweeps.readouts import ClaimReadout, Last, Readout
from sweeps.search import SamplerName, SelectionRule
from sweeps.space import MAX_GRID, Integer, Real

STUDY_NAME = r"[a-z0-9][a-z0-9-]{0,99}"
MAX_POINTS = 10_000
KINDS = ("log_uniform", "uniform", "int", "categorical")
"""Of distributions; the last has no bounds."""
Integers = tuple[int, ...] | None
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class That:
    """What a claim says: one relation of an arm and an arm or a number."""

    metric: str
    """Slashed name of a metric."""
    less: tuple[str | float, ...] | None = None
    """[A, B]: A has the smaller value."""
    greater: tuple[str | float, ...] | None = None
    """[A, B]: A has the larger value."""
    at_least: tuple[str | float, ...] | None = None
    """[A, B]: A is not smaller."""
    at_most: tuple[str | float, ...] | None = None
    """[A, B]: A is not larger."""
    within: tuple[str | float, ...] | None = None
    """[A, B]: they lie within `margin` of each other."""
    margin: float | None = None
    """Of `within`, in the unit of the metric, positive."""
    factor: float | None = None
    """The second arm counts this many times: 1000 asks for a ratio; positive."""
    readout: ClaimReadout | None = None
    """Which number of a run is compared; that of the study if absent."""

    def __post_init__(self) -> None:
        """Check the relation and its sides.

        Raises:
            RuleError: If there is not one, or a margin lacks its `within` or is not positive.
        """
        names = [name for name in get_args(Relation) if getattr(self, name) is not None]
        if len(names) != 1:
            every = get_args(Relation)
            rule = f"one of {', '.join(every)} is given"
            raise RuleError(rule, dict.fromkeys(names, True), fields=(*names, *every))
        sides = getattr(self, names[0])
        fits = len(sides) == 2 and isinstance(sides[0], str)
        require(fits, f"{names[0]} compares [ARM, ARM or number]", self, names[0])
        fits = self.margin is None if names != ["within"] else 0 < (self.margin or 0) < math.inf
        require(fits, "within, and it alone, has a margin > 0", self, "margin", names[0])
        if self.factor is not None:
            fits = isinstance(sides[1], str) and 0 < self.factor < math.inf
            require(fits, "a factor > 0 is of a second arm", self, "factor", names[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimKeys:
    """What a source says, to be checked against the runs."""

    says: str
    """The source's sentence, in your words."""
    source: str
    """Paper and place: `arXiv:2210.13512, table 1`."""
    that: That
    """The sentence as a relation."""

    def __post_init__(self) -> None:
        """Check the texts.

        Raises:
            RuleError: If one holds characters that would change how others are shown.
        """
        _check_plain(self, "says")
        _check_plain(self, "source")

    def claim(self) -> Claim:
        """Return the claim."""
        that = self.that
        (relation,) = [name for name in get_args(Relation) if getattr(that, name) is not None]
        left, right = getattr(that, relation)
        return Claim(
            says=self.says, source=self.source, relation=relation, left=left, right=right,
            metric=that.metric, margin=that.margin, readout=that.readout,
            factor=1.0 if that.factor is None else that.factor,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryKeys:
    """The values that a path may take: one of four distributions."""

    log_uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number whose logarithm is drawn evenly."""
    uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number."""
    categorical: object = None
    """One of these values."""
    step: int | None = None
    """Of `int`; 1 if absent."""
    values: int | None = None
    """Number of values that a grid takes of a real number, both bounds included."""
    when: object = None
    """Exists only where an earlier path has this value, or one of these."""
    int: Integers = None
    """[LOW, HIGH]: an integer."""

    def __post_init__(self) -> None:
        """Check that there is at most one distribution, and what stands beside it.

        Raises:
            RuleError: If not, or if the bounds are out of order.
        """
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        require(len(kinds) <= 1, f"one of {', '.join(KINDS)} is given", self, *kinds)
        require(self.step is None or kinds == ["int"], "step belongs to int", self, "step", "int")
        reals = ("uniform", "log_uniform")
        fits = self.values is None or kinds in ([kind] for kind in reals)
        require(fits, f"values belongs to {' and '.join(reals)}", self, "values", *reals)
        fits = self.values is None or 2 <= self.values <= MAX_GRID
        require(fits, f"2 <= values <= {MAX_GRID}", self, "values")
        self.range()

    def range(self) -> Real | Integer | None:
        """Return the distribution between two bounds; None if there are none.

        Raises:
            RuleError: If the bounds are not two in order.
        """
        kind = next((kind for kind in KINDS[:-1] if getattr(self, kind) is not None), None)
        if kind is None:
            return None
        bounds = getattr(self, kind)
        require(len(bounds) == 2, f"{kind} is [LOW, HIGH]", self, kind)
        low, high = bounds
        try:
            if kind == "int":
                return Integer(low=low, high=high, step=1 if self.step is None else self.step)
            is_log = kind == "log_uniform"
            return Real(low=low, high=high, is_log=is_log, num_values=self.values)
        except RuleError as error:
            raise RuleError(error.rule, error.values, fields=(kind,)) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long something is given before it may end."""

    after: int
    """Seeds of a point before it may be left (`prune`), or points in a row that gain nothing before
    a search may end (`stop`); at least 2."""

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If there are fewer than two.
        """
        require(self.after >= 2, "after >= 2", self, "after")


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfirmKeys:
    """The winner and the arms are trained again at fresh seeds, and tested once."""

    seeds: tuple[int, ...]
    """Seeds that the search does not use."""

    def __post_init__(self) -> None:
        """Check the seeds.

        Raises:
            RuleError: If one is out of range or repeated, or there is none.
        """
        check_seeds(self.seeds)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchKeys:
    """A space that Optuna searches beside the arms, on validation data alone."""

    space: object
    """Dotted path to the values it may take."""
    objective: str | tuple[str, ...]
    """Minimised; several give a Pareto front."""
    points: int | None = None
    """Points to try; a grid takes all of its own."""
    sampler: SamplerName = "tpe"
    """How points are proposed."""
    seed: int = 0
    """Of the sampler."""
    prune: Patience | None = None
    """When a point clearly worse than the best is left: fewer seeds than the study has."""
    budget: Budget | None = None
    """When no more points are asked for."""
    stop: Patience | None = None
    """When no more points are asked for, because they gain less than the noise of the seeds."""
    warm_start: bool = False
    """Tells the sampler of points whose results are stored already; they count as points."""
    select: SelectionRule = "val-mean"
    """How the point to confirm is chosen."""
    confirm: ConfirmKeys | None = None
    """Trains the winner and the arms again, and tests them once."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            RuleError: If a value is out of range, or the parts contradict each other.
        """
        points, is_grid = self.points, self.sampler == "grid"
        fits = points is None or 1 <= points <= MAX_POINTS
        require(fits, f"1 <= points <= {MAX_POINTS}", self, "points")
        require(0 <= self.seed < 2**31, "0 <= seed < 2^31", self, "seed")
        several = isinstance(self.objective, tuple) and len(self.objective) > 1
        require(not (several and self.prune), "prune is for one objective", self, "prune")
        require(not (several and self.stop), "stop is for one objective", self, "stop")
        require(not (is_grid and self.stop), "a grid takes all of its points", self, "stop")
        fits = not (several and self.sampler == "cmaes")
        require(fits, "cmaes is for one objective", self, "sampler")
        require(not is_grid or points is None, "a grid takes all of its points", self, "points")
        fits = not is_grid or self.budget in {None, Budget()}
        require(fits, "a grid asks for all of its points at once, so has no budget", self, "budget")
        require(not (is_grid and self.warm_start), "a grid asks anyway", self, "warm_start")
        fits = self.budget is None or self.budget.runs is None
        require(fits, "points limit the runs of a search", self, "budget")


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyKeys:
    """mixsweep study."""

    study: str
    """Name of the study and of its MLflow experiment."""
    problem: Annotated[str, Among(PROBLEMS)] = DEFAULT_PROBLEM
    """What the runs are."""
    description: str = ""
    """What the study asks."""
    base: object
    """The configuration that arms change; what is not given takes the documented default."""
    arms: object = None
    """Arms compared by seed: name to overrides on base."""
    grid: object = None
    """Every combination of these values is taken with every arm; of a list, of each grid."""
    zip: object = None
    """Values that are taken together, the first of each list, then the second; with every arm."""
    exclude: object = None
    """Combinations of grid, zip and arms that are left out: path to value."""
    search: object = None
    """A space that Optuna searches beside the arms."""
    seeds: int | tuple[int, ...]
    """A number of seeds, counted from 0, or the seeds themselves."""
    budget: Budget | None = None
    """When no more seeds are begun; those begun are finished. A search has one of its own."""
    baseline: str | None = None
    """The arm that others are compared with."""
    readout: Readout = field(default_factory=Last)
    """Which number stands for a run."""
    equivalence: float | None = None
    """Differences of the headline metric below this count as none; in its unit."""
    references: object = None
    """What a paper prints: arm to metric to number, in the unit of the metric."""
    differs: tuple[str, ...] = ()
    """What is done otherwise than by the source of the references, a sentence each."""
    claims: object = None
    """What the sources say, to be checked against the runs."""

    def __post_init__(self) -> None:
        """Check names and ranges.

        Raises:
            RuleError: If one is not right.
        """
        fits = re.fullmatch(STUDY_NAME, self.study) is not None
        require(fits, "study is a-z, 0-9 and -, not first a -, at most 100", self, "study")
        _check_plain(self, "description")
        _check_plain(self, "differs")
        fits = unicodedata.is_normalized("NFC", self.description)
        require(fits, "description is in Unicode normal form C", self, "description")
        margin = self.equivalence
        require(margin is None or 0 < margin < math.inf, "equivalence > 0", self, "equivalence")
        fits = self.search is None or self.budget is None
        require(fits, "the budget of a search is search.budget", self, "budget")
        if isinstance(self.seeds, tuple):
            check_seeds(self.seeds)
        else:
            require(self.seeds >= 1, "seeds >= 1", self, "seeds")

    def listed_seeds(self) -> Sequence[int]:
        """Return the seeds; a count stays a range, so that a huge one costs nothing."""
        return self.seeds if isinstance(self.seeds, tuple) else range(self.seeds)


def _check_plain(keys: object, field: str) -> None:
    said = getattr(keys, field)
    is_plain = not any(map(_INVISIBLE.search, said if isinstance(said, tuple) else (said,)))
    require(is_plain, f"{field} has no control or text-direction characters", keys, field)


def check_seeds(seeds: Sequence[int]) -> None:
    """Check a list of seeds.

    Raises:
        RuleError: If one is out of range or repeated (the first few are named), or there is none.
    """
    known: set[int] = set()
    wrong = [s for s in seeds if not 0 <= s <= MAX_SEED or s in known or known.add(s)]  # type: ignore[func-returns-value]
    if wrong or not seeds:
        rule = "seeds are at least one, distinct, in 0..2^63-1"
        raise RuleError(rule, {"seeds": wrong[:5]}, fields=("seeds",))
