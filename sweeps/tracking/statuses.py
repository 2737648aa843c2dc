"""Statuses: the status in MLflow of a run that no driver is training, and the outcome of an arm."""

from collections.abc import Mapping

from sweeps.state.results import Outcome
from sweeps.tracking.logged_run import Status

STATUSES: Mapping[Outcome, Status] = {
    "complete": "FINISHED",
    "failed": "FAILED",
    "diverged": "FAILED",
    "partial": "KILLED",
    "missing": "KILLED",
}
"""Status in MLflow of a run that no driver is training, by outcome of the run."""


def arm_outcome(outcomes: set[Outcome], *, is_known: bool) -> Outcome:
    """Return the outcome of an arm, given the outcomes of its runs, one per seed.

    The arm is `failed` if one run is, else `diverged` if one run is, else `missing` if all known
    runs are, else `complete` if all runs are, else `partial`.

    Args:
        outcomes: The distinct known outcomes.
        is_known: True if the outcome of every run of the arm is known.
    """
    if "failed" in outcomes:
        return "failed"
    if "diverged" in outcomes:
        return "diverged"
    if not is_known:
        return "partial" if outcomes - {"missing"} else "missing"
    return outcomes.pop() if len(outcomes) == 1 else "partial"
