"""Searching, HeldOut: what a search may minimise, vary and read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Rules that hide test results from a search; only the confirmation of its winner sees them."""

    hidden: Callable[[Any], Any]
    """Takes a configuration; returns the one that a search trains, without test results. Raises
    RuleError if a search cannot use the configuration.
    """
    revealed: Callable[[Any], Any]
    """Takes a configuration that a search trained; returns the one with which its confirmation
    trains, with test results.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Searching:
    """Rules of a search: metrics it can minimise, fields it must not vary, results it must not see.

    Example:
        >>> from mixsweep.plugins import Searching
        >>> Searching(objectives=("loss",), unsearchable=("dimension",)).objectives
        ('loss',)
    """

    objectives: tuple[str, ...] = ()
    """Names of the metrics that a search can minimise."""
    unsearchable: tuple[str, ...] = ()
    """Paths of fields that a search must not vary, because results would not be comparable."""
    held_out: HeldOut | None = None
    """Rules that hide test results from a search; None: a search may use every metric."""
