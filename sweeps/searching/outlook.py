"""Outlook: the largest number of runs that a launch may still get, to estimate when it ends."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """Largest number of runs that a search, or further seeds, may still add to a launch."""

    num_runs: int = 0
    """Number of runs that may still be added; pruned points need fewer."""
    at_once: int = 1
    """Number of runs that are added together, such as all seeds of a point."""
    hours: float | None = None
    """Hours until the time budget is used up; None without such a budget."""
    num_last: int = 0
    """Number of runs of a search's confirmation, which are added last."""
