"""The keys of a study file as types: the values allowed in each section, and its rules."""

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
"""Kinds of distributions; `categorical` has no bounds."""
Integers = tuple[int, ...] | None
SeedRange = Annotated[
    str, Matching(r"[0-9]{1,19}\.\.[0-9]{1,19}", "be a number, a list, or FIRST..LAST such as 0..9")
]


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryKeys(Checked):
    """The distribution of the values of a path: one of four kinds."""

    log_uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number, uniform on a logarithmic scale."""
    uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number, uniform."""
    categorical: object = None
    """A list; the value is one of its items."""
    step: Count | None = None
    """Step of `int`; default 1."""
    values: GridValues | None = None
    """Number of values that a grid uses for a real number, both bounds included."""
    when: object = None
    """Condition: the path is searched only if an earlier path has this value, or one of these
    values."""
    int: Integers = None
    """[LOW, HIGH]: an integer, uniform; both bounds included."""

    def check(self) -> None:
        """Check that there is at most one distribution, with only the keys that it allows.

        Raises:
            RuleError: If not, or if the bounds are not in order.
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
            f"`values` needs {' or '.join(reals)}",
            self,
            "values",
            *reals,
        )
        self.range()

    def range(self) -> Real | Integer | None:
        """Return the distribution with two bounds; None if the entry has none.

        Raises:
            RuleError: If there are not two bounds, or they are not in order.
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
    """A search space that Optuna explores in addition to the arms, on validation data only."""

    space: object
    """Distribution of values by dotted path."""

    def strategy(self) -> SearchStrategy:
        """Return all settings except the space, as a `SearchStrategy`."""
        names = [part.name for part in parts(SearchStrategy)]
        return SearchStrategy(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyKeys(Checked):
    """The keys of a mixsweep study."""

    study: Annotated[
        str, Matching(STUDY_NAME, "match [a-z0-9][a-z0-9-]* and have at most 100 characters")
    ]
    """Name of the study and of its MLflow experiment."""
    problem: Annotated[str, Among(PROBLEMS)] = DEFAULT_PROBLEM
    """Name of the problem that the runs solve."""
    description: PlainText = ""
    """The research question of the study."""
    base: object
    """The configuration that all arms start from; absent fields have their documented default."""
    arms: object = None
    """The arms to compare: the overrides of the base, by name of the arm."""
    grid: object = None
    """Lists of values by path; every combination is used with every arm. A list of grids is
    allowed."""
    zip: object = None
    """Lists of values by path, combined item by item (first with first, second with second); used
    with every arm."""
    exclude: object = None
    """Combinations of values of grid, zip and arms to leave out: value by path."""
    search: object = None
    """A search space that Optuna explores in addition to the arms."""
    seeds: Count | SeedList | SeedRange | UntilDecided
    """A number of seeds, counted from 0; a list of seeds; a range `FIRST..LAST`, both included; or
    a range of numbers with `until: decided`, which adds seeds at planned looks until every claim
    is decided."""
    budget: Budget | None = None
    """Limit after which no further seed starts; running seeds finish. A search has its own budget.
    """
    baseline: str | None = None
    """The arm that all others are compared with."""
    readout: Readout = field(default_factory=Last)
    """The read-out: how one number is computed from the epochs of a run."""
    headline: str | None = None
    """The metric that arms are compared by, such as `test/nll`; every arm must record it. Default:
    the first headline metric of the problem that is measured, such as `test/error`."""
    equivalence: Positive | None = None
    """Differences of the headline metric below this value count as equivalent; in the metric's
    unit."""
    references: object = None
    """Published numbers by arm and metric, in the unit of the metric."""
    untrained: object = None
    """Published numbers of methods that the study does not train, by name and metric."""
    differs: tuple[PlainText, ...] = ()
    """Differences between this study and the source of the references, one sentence each."""
    claims: object = None
    """Statements of the sources, which are tested with the runs."""
    sensitivity: object = None
    """Alternative settings under which every claim is judged again: a list of values by path, for
    which the arms of the claims are trained too; `readout` lists other read-outs of the same
    runs."""

    def check(self) -> None:
        """Check the rules that involve several keys.

        Raises:
            RuleError: If the keys contradict each other.
        """
        fits = unicodedata.is_normalized("NFC", self.description)
        require(fits, "description must be in Unicode normal form C", self, "description")
        fits = self.search is None or self.budget is None
        require(fits, "a search must have its budget as search.budget", self, "budget")
        if isinstance(self.seeds, str):
            fits = bool(seeds := self.listed_seeds()) and seeds[-1] <= MAX_SEED
            require(fits, f"FIRST <= LAST <= {MAX_SEED}", self, "seeds")
        if isinstance(self.seeds, UntilDecided):
            self._check_until()

    def _check_until(self) -> None:
        rules = {
            "seeds": (self.claims is not None, "needs `claims`, which end the study"),
            "search": (self.search is None, "must have no search: points are not claims"),
            "budget": (self.budget is None, "must have no budget: at_most limits its seeds"),
        }
        for key, (fits, rule) in rules.items():
            if not fits:
                stated = f"a study with `until: decided` {rule}"
                raise RuleError(stated, {}, fields=(key,))

    def listed_seeds(self) -> Sequence[int]:
        """Return the seeds; a number of seeds gives a range, which needs no memory even if huge."""
        if isinstance(self.seeds, str):
            first, last = map(int, self.seeds.split(".."))
            return range(first, last + 1)
        if isinstance(self.seeds, UntilDecided):
            return self.seeds.seeds()
        return self.seeds if isinstance(self.seeds, tuple) else range(self.seeds)
