"""Search: a space of dotted paths, the points tried in it, and how they are judged. No Optuna."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import eq
from typing import Any, Literal, assert_never

from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import Config, problem_of, with_named_teacher
from mixup_core.tree.building import with_values
from sweeps.budget import Budget
from sweeps.space import Categorical, Distribution, Integer, Real, Space

SamplerName = Literal["tpe", "random", "gp", "cmaes", "grid"]
SelectionRule = Literal["val-mean", "val-1se"]
PointState = Literal["open", "complete", "pruned", "failed"]

CONFIRM = "confirm "
"""Begins the name of an arm that confirms the arm named after it."""


class SearchError(Exception):
    """A search that cannot be opened or go on here, in one line for the user."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One proposal of a search."""

    number: int
    """0 for the first; also the number of Optuna's trial."""
    values: Mapping[str, Any]
    """Dotted path to value, of the parameters that exist at this point."""
    state: PointState
    """`failed`: a seed diverged, so there is no mean. While a seed failed for another reason the
    point stays open, and the next launch tries that seed again."""
    num_seeds: int | None = None
    """Seeds it was given, the first of the study's, if it was closed before it had all; else
    None."""
    objectives: tuple[float, ...] = ()
    """Mean over the seeds of each objective; empty unless the point is complete."""
    is_known: bool = False
    """Whether its results were in the store before the search had the point (`warm_start`)."""

    @property
    def arm(self) -> str:
        """Name of the point among the arms of its study."""
        return f"point {self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """A space, the objectives minimised in it, and everything that decides the proposals."""

    base: Config
    """Configuration that points change, as a search may train it (`HeldOut.hidden`)."""
    space: Space
    points: int
    """Points to try."""
    objectives: tuple[str, ...]
    """Metrics of the last epoch, each minimised as a mean over seeds; the first decides what is
    confirmed."""
    sampler: SamplerName = "tpe"
    seed: int = 0
    """Of the sampler."""
    prune_after: int | None = None
    """Seeds after which a point that is clearly worse than the best gets no more; None: never."""
    budget: Budget = field(default_factory=Budget)
    stop_after: int | None = None
    """Points in a row without a gain after which no more are asked for (`has_settled`); None: the
    search goes on to its last point."""
    warm_start: bool = False
    """Whether points that the store holds at every seed, whatever study trained them, are told
    before any is asked for. They count as points."""
    select: SelectionRule = "val-mean"
    """How the point to confirm is chosen (`select_point`)."""
    confirm_seeds: tuple[int, ...] = ()
    """Seeds at which the winner and the arms are trained again as `confirming` says, other seeds
    than the study's; empty: nothing is confirmed, and what was held out stays so."""

    def config_of(self, values: Mapping[str, Any]) -> Config:
        """Return the configuration of a point."""
        return with_values(self.base, values)

    def fork_epochs(self, values: Mapping[str, Any]) -> frozenset[int]:
        """Return the epochs of a point's runs from which a later point of the space may fork.

        These are the epochs that it shares with the points that differ from it in one parameter.
        With a parameter that is drawn from a continuum two points never share any.

        Args:
            values: Of the point.
        """
        if not self.space.is_countable:
            return frozenset()
        own = stage_keys(with_named_teacher(self.config_of(values)))
        shared = set()
        for parameter in self.space.parameters:
            for value in parameter.distribution.values() or ():
                if parameter.path in values and value != values[parameter.path]:
                    with suppress(ValueError, KeyError):  # values that cannot stand together
                        config = self.config_of({**values, parameter.path: value})
                        other = stage_keys(with_named_teacher(config))
                        shared.add(sum(map(eq, own, other)))
        return frozenset(shared - {0})

    def fingerprint(self, seeds: Sequence[int]) -> str:
        """Return 8 digits that change with anything that makes told values incomparable.

        More points, a budget, a stop, known points or a confirmation extend a search; another
        space, objective, base, seed or sampler is another search.
        """
        decisive = ", ".join(
            [
                repr(run_key(with_named_teacher(self.base))), _frozen_space(self.space),
                repr(self.objectives),
                repr(self.sampler), repr(self.seed), repr(self.prune_after), repr(tuple(seeds)),
            ]
        )  # fmt: skip
        return hashlib.sha256(f"({decisive})".encode()).hexdigest()[:8]


def _frozen_space(space: Space) -> str:
    """Return the spelling of a space that names searches: it stays whatever is renamed."""

    def spell(distribution: Distribution) -> str:
        match distribution:
            case Real(low=low, high=high, is_log=is_log, num_values=count):
                return f"Real(low={low!r}, high={high!r}, is_log={is_log!r}, num_values={count!r})"
            case Integer(low=low, high=high, step=step):
                return f"Integer(low={low!r}, high={high!r}, step={step!r})"
            case Categorical(choices=choices):
                return f"Categorical(choices={choices!r})"
            case _:
                assert_never(distribution)

    parameters = [
        f"Parameter(path={p.path!r}, distribution={spell(p.distribution)}, when={dict(p.when)!r})"
        for p in space.parameters
    ]
    comma = "," if len(parameters) == 1 else ""
    return f"Space(parameters=({', '.join(parameters)}{comma}))"


def confirming(config: Config) -> Config:
    """Return a configuration as a winner is confirmed, beside the arms (`HeldOut.revealed`)."""
    held_out = problem_of(config).held_out
    confirmed: Config = config if held_out is None else held_out.revealed(config)
    return confirmed


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchHistory:
    """What Optuna's storage holds of a search."""

    points: tuple[Point, ...] = ()
    """By number."""
    ended: str | None = None
    """Why no more points will be asked for although some are left, as a predicate of `the
    search`."""
    importances: Mapping[str, float] = field(default_factory=dict)
    """Parameter to its share of the importance for the first objective (PED-ANOVA over means of
    complete points), adding up to 1; parameters that exist at every point, and two complete points
    or more, else empty, as where nobody asked for it."""

    def asks(self, search: Search) -> bool:
        """Return whether more points will be asked for."""
        return len(self.points) < search.points and self.ended is None
