"""Reading: rules by which the study file of a problem is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mixup_core.rules import RuleError


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Rules by which a study file is read, in addition to the rules of the configuration itself."""

    baseline: str = "erm"
    """Arm that the others are compared with, or else its first grid point, if the study has one and
    sets no baseline itself.
    """
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that the program fills in, with the message for a user who sets them."""
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Names that other programs use for fields, with the path of the field here, for error
    messages.
    """
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Yields the reasons why a run of a prepared configuration would fail on its data."""
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda config, seeds: iter(
        ()
    )
    """Takes a prepared configuration and seeds; yields the reasons why the random draws of a seed
    would make its run fail.
    """
