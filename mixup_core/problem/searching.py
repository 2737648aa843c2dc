"""Searching, HeldOut: the metrics that a search may minimise, and its limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Hides from a search the numbers (test images) that only the confirmation may read."""

    hidden: Callable[[Any], Any]
    """Returns the configuration that a search trains; raises RuleError if it cannot be searched."""
    revealed: Callable[[Any], Any]
    """Returns the configuration with which the winner of a search is confirmed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Searching:
    """The metrics that a search may minimise, and the fields and numbers that it must not use."""

    objectives: tuple[str, ...] = ()
    """Metrics that a search can minimise."""
    unsearchable: tuple[str, ...] = ()
    """Paths that a search must not vary, because results would not be comparable."""
    held_out: HeldOut | None = None
    """Rules that hide numbers from a search; None: a search may read every number."""
