"""Outlook: how many runs may still be added to a launch, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """Upper bound of the runs that a source may still add."""

    num_runs: int = 0
    """Number of runs that may still be added; pruned points need fewer."""
    at_once: int = 1
    """Number of runs that are added together: those of one seed of a grid, or of one point."""
    hours: float | None = None
    """Hours until a budget is used up; None without a limit of time."""
    num_last: int = 0
    """Number of runs of the confirmation, which are added last."""
