"""Outlook: how many runs may still join a launch, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """Upper bound of the runs that a source may still add."""

    num_runs: int = 0
    """Runs that may still be added; pruned points need fewer."""
    at_once: int = 1
    """Runs that are added together: those of one seed of a grid, or of one point."""
    hours: float | None = None
    """Hours until a budget is spent; None without a limit of time."""
    num_last: int = 0
    """Runs of the confirmation, which are added last."""
