"""Search: a space of dotted paths, the points tried in it, their arms, and its rules.

This module does not use Optuna.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import eq
from typing import Annotated, Any, Literal

from mixup_core.config.building import with_values
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Distinct, Range
from mixup_core.config.written_forms import plugins_of
from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import Config, Seed, problem_of, with_named_teacher
from mixup_core.rules import require
from sweeps.study.budget import Budget
from sweeps.study.space import MAX_PROBED, Space

SamplerName = Literal["tpe", "random", "gp", "cmaes", "grid"]
SelectionRule = Literal["val-mean", "val-1se"]
PointState = Literal["open", "complete", "pruned", "failed"]

START_UP = {"tpe": 10, "gp": 10, "cmaes": 1}
"""Number of complete points that each sampler needs; with fewer it draws at random."""

MAX_POINTS = 10_000
"""Largest number of points of a search."""

SeedList = Annotated[tuple[Seed, ...], Distinct(may_be_empty=False)]
"""Distinct seeds of runs that are compared."""


class SearchError(Exception):
    """A search cannot be opened or continued; the message is one line for the user."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A set of parameter values that a search proposed, and how its training ended."""

    number: int
    """Number of the point and of its Optuna trial, from 0."""
    values: Mapping[str, Any]
    """Value of each parameter that exists at this point, by dotted path."""
    state: PointState
    """State of the training: `open` (not ended), `complete` (all seeds are trained), `pruned`, or
    `failed` (a run diverged or records no objective, so there is no mean). After another kind of
    failure the point stays `open`, and the next launch tries the failed run again."""
    num_seeds: int | None = None
    """Number of seeds at which the point was trained (the first ones of the study), if it was
    pruned or failed before it had all seeds; otherwise None."""
    objectives: tuple[float, ...] = ()
    """Mean over seeds of each objective; empty if the point is not complete."""
    is_known: bool = False
    """True if its results were stored before the search proposed it (`warm_start`)."""

    @property
    def arm(self) -> str:
        return name_of_point(self.number)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruning(Checked):
    """Rule that prunes a point of a search that is clearly worse than the best after some seeds."""

    after: Annotated[int, Range(2)]
    """Number of seeds of a point before its first comparison."""
    every: Count | None = None
    """Number of further seeds between later comparisons. None: no later comparison; all remaining
    seeds run at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience(Checked):
    """Rule that ends a search if its last points improve by less than the noise between seeds."""

    after: Annotated[int, Range(2)]
    """Number of points in a row without a gain, after which the search ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation(Checked):
    """Confirmation of a search: the best point and the arms are trained again with new seeds."""

    seeds: SeedList
    """Seeds of the confirmation; none may be a seed of the search."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchStrategy(Checked):
    """Settings of a search: how points are proposed, pruned and selected, and when it ends."""

    objective: str | Annotated[tuple[str, ...], Distinct(may_be_empty=False)]
    """Metrics of the last epoch, each minimised as a mean over seeds. Several metrics give a Pareto
    front; the first one selects the point to confirm."""
    points: Annotated[int, Range(1, MAX_POINTS)] | None = None
    """Number of points; must be absent for a grid, which uses all of its points."""
    sampler: SamplerName = "tpe"
    """Method that proposes points."""
    seed: Annotated[int, Range(0, 2**31 - 1)] = 0
    """Seed of the sampler."""
    prune: Pruning | None = None
    """Rule that prunes a point: if it is clearly worse than the best point after some of its seeds,
    the others are not trained. None: no pruning."""
    budget: Budget | None = None
    """Limit after which no more points are proposed. None for no limit."""
    stop: Patience | None = None
    """Rule that ends a search whose last points improve by less than the noise between seeds. None:
    no such rule."""
    warm_start: bool = False
    """True to add points whose results are in the store already, before a launch proposes any."""
    select: SelectionRule = "val-mean"
    """Rule that selects the best point. `val-mean`: the lowest mean of the first objective.
    `val-1se`: the simplest point whose mean is within one standard error of the lowest."""
    confirm: Confirmation | None = None
    """Confirmation: the best point and the arms are trained again at new seeds. None: no
    confirmation.
    """

    def check(self) -> None:
        several, is_grid = len(self.objectives) > 1, self.sampler == "grid"
        of_one = "compares points by one number: it needs a single objective"
        not_of_grid = "must be absent with sampler grid, which tries every point"
        cmaes, runs = several and self.sampler == "cmaes", self.budget and self.budget.runs
        for name, is_broken, rule in (
            ("prune", several and self.prune, f"prune {of_one}"),
            ("stop", several and self.stop, f"stop {of_one}"),
            ("stop", is_grid and self.stop, f"stop {not_of_grid}"),
            ("sampler", cmaes, "sampler cmaes needs a single objective"),
            ("points", is_grid and self.points, f"points {not_of_grid}"),
            ("budget", is_grid and self.budget not in {None, Budget()}, f"budget {not_of_grid}"),
            ("warm_start", is_grid and self.warm_start, f"warm_start {not_of_grid}"),
            ("budget", runs, "budget.runs must be absent in a search; limit its points instead"),
        ):
            require(not is_broken, rule, self, name)

    @property
    def objectives(self) -> tuple[str, ...]:
        return (self.objective,) if isinstance(self.objective, str) else tuple(self.objective)

    @property
    def prune_after(self) -> int | None:
        return None if self.prune is None else self.prune.after

    def prune_looks(self, seeds: int) -> tuple[int, ...]:
        """Return the numbers of seeds after which a point may be pruned; empty if it never is."""
        if self.prune is None:
            return ()
        every = self.prune.every or seeds
        return tuple(range(self.prune.after, seeds, every))

    @property
    def stop_after(self) -> int | None:
        return None if self.stop is None else self.stop.after

    @property
    def confirm_seeds(self) -> tuple[int, ...]:
        """Seeds of the confirmation; empty if there is none, and test data stay unused."""
        return () if self.confirm is None else self.confirm.seeds


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """A search space with all settings that decide which points are tried."""

    base: Config
    """Configuration that the points modify, without test data (`HeldOut.hidden`)."""
    space: Space
    points: int
    """Number of points to try; for a grid, all of its points."""
    strategy: SearchStrategy

    @property
    def budget(self) -> Budget:
        return self.strategy.budget or Budget()

    def config_of(self, values: Mapping[str, Any]) -> Config:
        """Return the base configuration with the parameter values of a point."""
        return with_values(self.base, values)

    def fits(self, values: Mapping[str, Any], seeds: Sequence[int]) -> bool:
        """Return True unless a point breaks a rule, or its runs or its confirmation would fail."""
        try:
            config, fresh = self.config_of(values), self.strategy.confirm_seeds
        except ValueError:  # the corners of the space do not cover every combination
            return False
        unfit = problem_of(config).reading.unfit
        return not (any(unfit(config, seeds)) or (fresh and any(unfit(confirming(config), fresh))))

    def without_effect(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the paths whose values do not change results, such as an unused law."""

        def content(point: Mapping[str, Any]) -> str:
            return stage_keys(with_named_teacher(self.config_of(point)))[-1]

        paths = []
        for path in values:
            rest = {other: value for other, value in values.items() if other != path}
            with suppress(ValueError, KeyError):  # values that are invalid without this one
                if content(rest) == content(values):
                    paths.append(path)
        return tuple(paths)

    def fork_epochs(self, values: Mapping[str, Any]) -> frozenset[int]:
        """Return the epochs after which points that differ in one parameter fork from this one.

        There are none in a space of real numbers or of many values, whose points rarely differ in
        one parameter alone.
        """
        if not self.space.is_countable or self.space.num_values > MAX_PROBED:
            return frozenset()
        own_keys = stage_keys(with_named_teacher(self.config_of(values)))
        shared = set()
        for parameter in self.space.parameters:
            for value in parameter.distribution.values() or ():
                if parameter.path in values and value != values[parameter.path]:
                    with suppress(ValueError, KeyError):  # an invalid combination of values
                        config = self.config_of({**values, parameter.path: value})
                        other_keys = stage_keys(with_named_teacher(config))
                        shared.add(sum(map(eq, own_keys, other_keys)))
        return frozenset(shared - {0})

    def fingerprint(self, seeds: Sequence[int]) -> str:
        """Return a hash of 8 digits that identifies the search.

        It depends on the space, the objectives, the base configuration, the seeds, the sampler, the
        pruning and the plugins. More points, a budget, `stop`, `warm_start` or a confirmation only
        extend a search, so they do not change the hash.
        """
        # Frozen: these texts and their order, which name the search. It would start anew;
        # tests/contracts/test_homes.py fails.
        decisive = ", ".join(
            [
                repr(run_key(with_named_teacher(self.base))), repr(self.space),
                repr(self.strategy.objectives),
                repr(self.strategy.sampler), repr(self.strategy.seed),
                repr(self.strategy.prune_after), repr(tuple(seeds)),
            ]
        )  # fmt: skip
        if self.strategy.prune is not None and self.strategy.prune.every is not None:
            decisive += f", every {self.strategy.prune.every}"
        corners = map(self.config_of, self.space.corners())
        if plugins := sorted({item for c in corners for item in plugins_of(c).items()}):
            decisive += f", {plugins!r}"
        return hashlib.sha256(f"({decisive})".encode()).hexdigest()[:8]


def confirming(config: Config) -> Config:
    """Return a configuration as a confirmation trains it, such as with test metrics."""
    held_out = problem_of(config).searching.held_out
    confirmed: Config = config if held_out is None else held_out.revealed(config)
    return confirmed


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchHistory:
    """The points of a search so far, and the reason why it ended."""

    points: tuple[Point, ...] = ()
    """Points in the order of their numbers."""
    ended: str | None = None
    """Reason why the search proposes no more points, such as `used up its budget of 2 hours` (the
    subject is the search); None while it continues."""

    def asks(self, search: Search) -> bool:
        """Return True if a search will propose more points, given these points so far."""
        return len(self.points) < search.points and self.ended is None


_POINT = r"point \d+"


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedArm:
    """An arm that is not in the study file: a point of the search, or part of its confirmation."""

    seeds: tuple[int, ...]
    """Seeds at which the arm is trained, instead of those of the study."""
    confirms: str | None = None
    """Name of the arm that this arm trains again at new seeds; None for a point."""

    @property
    def is_point(self) -> bool:
        """True if the arm is a point of the search, False if it is an arm of its confirmation."""
        return self.confirms is None


def name_of_point(number: int) -> str:
    """Return `point 3`: no arm of a study file has a space in its name without `=`."""
    return f"point {number}"


def name_of_confirmation(arm: str) -> str:
    """Return the name of the arm that trains an arm again in the confirmation: `confirm ARM`."""
    return f"confirm {arm}"


def added_among(names: Collection[str]) -> frozenset[str]:
    """Return which names are of added arms; only for stored files (see `Study.added`)."""
    points = {name for name in names if re.fullmatch(_POINT, name)}
    return frozenset(points | (set(map(name_of_confirmation, names)) & set(names)))
