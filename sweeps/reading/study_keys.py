"""The keys of a study file as types: what each section may hold, and its own rules."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from mixup_core.problem import DEFAULT_PROBLEM, MAX_SEED, PROBLEMS
from mixup_core.rules import RuleError, require
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Among, Count, Matching, PlainText, Positive
from mixup_core.tree.parts import parts
from sweeps.study.budget import Budget
from sweeps.study.readouts import Last, Readout
from sweeps.study.search import SearchStrategy, SeedList
from sweeps.study.space import GridValues, Integer, Real
from sweeps.study.until_decided import UntilDecided

STUDY_NAME = r"[a-z0-9][a-z0-9-]{0,99}"
KINDS = ("log_uniform", "uniform", "int", "categorical")
"""Kinds of distributions; the last has no bounds."""
Integers = tuple[int, ...] | None
SeedRange = Annotated[
    str, Matching(r"[0-9]{1,19}\.\.[0-9]{1,19}", "be a number, a list, or FIRST..LAST such as 0..9")
]


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryKeys(Checked):
    """The values that a path may take: one of four distributions."""

    log_uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number whose logarithm is drawn evenly."""
    uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number."""
    categorical: object = None
    """One of these values."""
    step: Count | None = None
    """Step of `int`; 1 if absent."""
    values: GridValues | None = None
    """Number of values that a grid takes of a real number, both bounds included."""
    when: object = None
    """Exists only where an earlier path has this value, or one of these."""
    int: Integers = None
    """[LOW, HIGH]: an integer."""

    def check(self) -> None:
        """Check that there is at most one distribution, and what stands beside it.

        Raises:
            RuleError: If not, or if the bounds are out of order.
        """
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        require(
            len(kinds) <= 1, f"no more than one of {', '.join(KINDS)} must be given", self, *kinds
        )
        require(
            self.step is None or kinds == ["int"],
            "step needs int",
            self,
            "step",
            "int",
        )
        reals = ("uniform", "log_uniform")
        fits = self.values is None or kinds in ([kind] for kind in reals)
        require(
            fits,
            f"values needs {' or '.join(reals)}",
            self,
            "values",
            *reals,
        )
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
        require(len(bounds) == 2, f"{kind} must be [LOW, HIGH]", self, kind)
        low, high = bounds
        try:
            if kind == "int":
                return Integer(low=low, high=high, step=1 if self.step is None else self.step)
            is_log = kind == "log_uniform"
            return Real(low=low, high=high, is_log=is_log, num_values=self.values)
        except RuleError as error:
            raise RuleError(error.rule, error.values, fields=(kind,)) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchKeys(SearchStrategy):
    """A space that Optuna searches beside the arms, on validation data alone."""

    space: object
    """Dotted path to the values it may take."""

    def strategy(self) -> SearchStrategy:
        """Return the rest, which compares and travels without what was written of the space."""
        names = [part.name for part in parts(SearchStrategy)]
        return SearchStrategy(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyKeys(Checked):
    """mixsweep study."""

    study: Annotated[
        str, Matching(STUDY_NAME, "match [a-z0-9][a-z0-9-]* and have at most 100 characters")
    ]
    """Name of the study and of its MLflow experiment."""
    problem: Annotated[str, Among(PROBLEMS)] = DEFAULT_PROBLEM
    """The problem that the runs solve."""
    description: PlainText = ""
    """The question of the study."""
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
    seeds: Count | SeedList | SeedRange | UntilDecided
    """A number of seeds, counted from 0; a list of them; `FIRST..LAST`, both included; or a range
    of numbers with `until: decided`: seeds are added at planned looks until every claim is
    decided."""
    budget: Budget | None = None
    """Limit after which no more seeds begin; running seeds finish. A search has its own."""
    baseline: str | None = None
    """The arm that others are compared with."""
    readout: Readout = field(default_factory=Last)
    """Read-out: the one number of a run."""
    headline: str | None = None
    """The metric that arms are compared by, as `test/nll`. Every arm must record it. By default the
    first of the problem's that is measured, such as `test/error`."""
    equivalence: Positive | None = None
    """Differences of the headline metric below this count as none; in its unit."""
    references: object = None
    """Numbers that a paper prints: arm to metric to number, in the unit of the metric."""
    differs: tuple[PlainText, ...] = ()
    """Differences from the source of the references, one sentence each."""
    claims: object = None
    """Statements of the sources, to be checked against the runs."""
    sensitivity: object = None
    """Settings that every claim is judged under beside those of its arms: path to values, each of
    which is trained for the arms of the claims; `readout` to read-outs of the same runs."""

    def check(self) -> None:
        """Check the rules between keys.

        Raises:
            RuleError: If they contradict each other.
        """
        fits = unicodedata.is_normalized("NFC", self.description)
        require(fits, "description must be in Unicode normal form C", self, "description")
        fits = self.search is None or self.budget is None
        require(fits, "a search must have its budget as search.budget", self, "budget")
        if isinstance(self.seeds, str):
            fits = bool(seeds := self.listed_seeds()) and seeds[-1] <= MAX_SEED
            require(fits, f"FIRST <= LAST <= {MAX_SEED}", self, "seeds")
        if isinstance(self.seeds, UntilDecided):
            rule = "`until: decided` needs claims"
            require(self.claims is not None, rule, self, "seeds", "claims")
            rule = "`until: decided` must have no search: points are not claims"
            require(self.search is None, rule, self, "search", "seeds")
            rule = "`until: decided` must have no budget: at_most is the largest number of seeds"
            require(self.budget is None, rule, self, "budget", "seeds")

    def listed_seeds(self) -> Sequence[int]:
        """Return the seeds; a count stays a range, so that a huge one costs nothing."""
        if isinstance(self.seeds, str):
            first, last = map(int, self.seeds.split(".."))
            return range(first, last + 1)
        if isinstance(self.seeds, UntilDecided):
            return self.seeds.seeds()
        return self.seeds if isinstance(self.seeds, tuple) else range(self.seeds)
