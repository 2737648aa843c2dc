"""Outlook: how many runs may still join a launch, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What a source of runs may still give, at most."""

    num_runs: int = 0
    """Runs that join as long as nothing ends that: points that are pruned need fewer."""
    at_once: int = 1
    """Of these, as join together: a seed of a grid, a point of a search."""
    hours: float | None = None
    """Until a budget is spent and no more of them join; None if none limits their time."""
    num_last: int = 0
    """Runs that join after them in any case: a confirmation."""
