"""Reading: rules for reading the study files of a problem."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mixup_core.rules import RuleError


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Rules for reading study files: fields they must not set, further checks.

    `other_names` maps the names of settings in other programs to this problem's, for hints in
    error messages.

    Example:
        >>> from mixsweep.plugins import Reading
        >>> reading = Reading(other_names={"learning_rate": "rate"})
        >>> reading.other_names["learning_rate"]
        'rate'
    """

    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that a study file must not set, because the program fills them in. Each path has the
    message for a user who sets it.
    """
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Names of settings in other programs, each with the path of the same setting in this problem.
    An error message about an unknown name suggests the path.
    """
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Takes a configuration returned by `DataNeeds.prepare`; yields the reasons why its run would
    fail on the data.
    """
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda config, seeds: iter(
        ()
    )
    """Takes a configuration returned by `DataNeeds.prepare`, and seeds; yields the reasons why the
    run of one of the seeds would fail on its random draws.
    """
