"""Searching: the metrics that a search may minimise, and its limits."""

from dataclasses import dataclass

from mixup_core.problem.held_out import HeldOut


@dataclass(frozen=True, kw_only=True, slots=True)
class Searching:
    """The metrics that a search may minimise, and what it must not vary or read."""

    objectives: tuple[str, ...] = ()
    """Metrics that a search can minimise."""
    unsearchable: tuple[str, ...] = ()
    """Paths that a search must not vary, because results would not be comparable."""
    held_out: HeldOut | None = None
    """Rules that hide numbers from a search; None: a search may read every number."""
