"""The keys of a study file as dataclasses: the type and meaning of each value, and their rules."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Among, Count, Matching, PlainText, Positive
from mixup_core.config.parts import parts
from mixup_core.problem import DEFAULT_PROBLEM, MAX_SEED, PROBLEMS
from mixup_core.rules import RuleError, require
from mixup_core.store.manifests import STUDY_NAME
from sweeps.study.budget import Budget
from sweeps.study.claims import UntilDecided
from sweeps.study.readouts import Last, Readout
from sweeps.study.search import SearchStrategy, SeedList
from sweeps.study.space import GridValues, Integer, Real

KINDS = ("log_uniform", "uniform", "int", "categorical")
"""Kinds of distributions in a search space; `categorical` lists values, the others have two
bounds.
"""
Integers = tuple[int, ...] | None
SeedRange = Annotated[
    str, Matching(r"[0-9]{1,19}\.\.[0-9]{1,19}", "be a number, a list, or FIRST..LAST such as 0..9")
]
_RANGE = re.compile(r"\s*([0-9]{1,19})\s*(?:\.{2,}|-|\u2013|:|to)\s*([0-9]{1,19})\s*")


def range_hint(at: Sequence[str | int], text: str) -> str:
    """Return advice for a text such as `0-9` in a list of seeds; empty for any other text."""
    match = _RANGE.fullmatch(text)
    if match is None or len(at) < 2 or at[-2] != "seeds":
        return ""
    if len(at) > 2:
        return "; write each seed of this list by itself"
    return f"; write a range without brackets, seeds: {'..'.join(match.groups())}"


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryKeys(Checked):
    """The keys of a study file that give the distribution of one searched value.

    Exactly one of `log_uniform`, `uniform`, `categorical` and `int` is given.
    """

    log_uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number, uniformly distributed on a logarithmic scale."""
    uniform: tuple[float, ...] | None = None
    """[LOW, HIGH]: a real number, uniformly distributed."""
    categorical: object = None
    """A list of values; each has the same probability."""
    step: Count | None = None
    """Distance between neighbouring values of `int`; default 1."""
    values: GridValues | None = None
    """Number of values that `sampler: grid` takes from a range of real numbers, bounds included."""
    when: object = None
    """Condition for searching this path: the values that other searched paths must have."""
    int: Integers = None
    """[LOW, HIGH]: an integer, uniformly distributed, both bounds included."""

    def check(self) -> None:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        rule = f"no more than one of {', '.join(KINDS)} must be given"
        require(len(kinds) <= 1, rule, self, *kinds)
        require(self.step is None or kinds == ["int"], "`step` needs `int`", self, "step", "int")
        reals = ("uniform", "log_uniform")
        fits = self.values is None or kinds in ([kind] for kind in reals)
        require(fits, f"`values` needs {' or '.join(reals)}", self, "values", *reals)
        self.range()

    def range(self) -> Real | Integer | None:
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
    """The section `search` of a study file: the values that Optuna varies, and its rules."""

    space: object
    """The distribution of each searched value, by dotted path of the configuration."""

    def strategy(self) -> SearchStrategy:
        names = [part.name for part in parts(SearchStrategy)]
        return SearchStrategy(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyKeys(Checked):
    """The top-level keys of a study file."""

    # Frozen: names of keys, also in the study files that stores and archives contain;
    # tests/sweeps/test_bundled_studies.py fails.
    study: Annotated[
        str, Matching(STUDY_NAME, "match [a-z0-9][a-z0-9-]* and have at most 100 characters")
    ]
    """Name of the study and of its MLflow experiment."""
    problem: Annotated[str, Among(PROBLEMS)] = DEFAULT_PROBLEM
    """The problem: the kind of data, model and training that the runs use."""
    description: PlainText = ""
    """The research question of the study, in a sentence or two."""
    plugins: tuple[PlainText, ...] = ()
    """Python files beside the study file, or in folders below it, that add models, laws, ... They
    are run when the study is read from its file, but not if it is read by name or from an archive.
    """
    base: object
    """The configuration that all arms start from; fields that are not set have their documented
    default."""
    arms: object = None
    """The arms to compare: for each name, the values that differ from the base."""
    grid: object = None
    """Lists of values by dotted path; every combination is trained for every arm. A list of grids
    is allowed."""
    zip: object = None
    """Lists of values by dotted path, combined item by item (first with first, second with second),
    for every arm."""
    exclude: object = None
    """Combinations of values of grid, zip and arms that are not trained: value by dotted path."""
    search: object = None
    """A search space that Optuna explores in addition to the arms."""
    seeds: Count | SeedList | SeedRange | UntilDecided
    """A number of seeds, counted from 0; a list of seeds; a range `FIRST..LAST`, both included; or
    a range of numbers with `until: decided`, which adds seeds at planned looks until every claim
    is decided."""
    budget: Budget | None = None
    """Limit of time or cost, after which no further seed starts; running seeds finish. A search has
    its own budget."""
    baseline: str | None = None
    """The arm that all others are compared with. Default: the arm `erm` (a problem may define
    another name), or the first grid point of that arm. Without such an arm, it is the first arm."""
    readout: Readout = field(default_factory=Last)
    """The read-out: how the evaluations of a run become the one number that stands for it."""
    headline: str | None = None
    """The metric that arms are compared by, such as `test/nll`; every arm must record it. Default:
    the problem's main metric, such as `test/error`."""
    equivalence: Positive | None = None
    """Differences of the headline metric below this value count as equivalent; in the metric's
    unit."""
    references: object = None
    """Published numbers for the arms, by arm and metric, in the unit of the metric."""
    untrained: object = None
    """Published numbers for methods that the study does not train, by name and metric."""
    differs: tuple[PlainText, ...] = ()
    """Differences between this study and the paper that the published numbers come from, one
    sentence each."""
    claims: object = None
    """Statements from papers that the runs of this study test."""
    sensitivity: object = None
    """Alternative settings under which every claim is judged again: lists of values by dotted path.
    The arms of the claims are trained for each. `readout` lists other read-outs, which need no
    training."""

    def check(self) -> None:
        fits = unicodedata.is_normalized("NFC", self.description)
        require(fits, "description must be in Unicode normal form C", self, "description")
        fits = self.search is None or self.budget is None
        rule = "a study with a search must have its budget in `search.budget`"
        require(fits, rule, self, "budget")
        if isinstance(self.seeds, str):
            fits = bool(seeds := self.listed_seeds()) and seeds[-1] <= MAX_SEED
            require(fits, f"FIRST <= LAST <= {MAX_SEED}", self, "seeds")
        if isinstance(self.seeds, UntilDecided):
            self._check_until()

    def _check_until(self) -> None:
        rules = {
            "seeds": (self.claims is not None, "needs `claims`, because their verdicts end it"),
            "search": (self.search is None, "must have no `search`, because only claims end it"),
            "budget": (self.budget is None, "must have no `budget`: `at_most` limits its seeds"),
        }
        for key, (fits, rule) in rules.items():
            if not fits:
                stated = f"a study with `until: decided` {rule}"
                raise RuleError(stated, {}, fields=(key,))

    def listed_seeds(self) -> Sequence[int]:
        """Return all seeds that a study may use; a `range` is not counted up."""
        if isinstance(self.seeds, str):
            first, last = map(int, self.seeds.split(".."))
            return range(first, last + 1)
        if isinstance(self.seeds, UntilDecided):
            return self.seeds.seeds()
        return self.seeds if isinstance(self.seeds, tuple) else range(self.seeds)
