"""Waits that last as long as something moves, however slow the machine is."""

import time
from collections.abc import Callable
from typing import TypeVar

from sweeps.state.results import RunResult

Found = TypeVar("Found")
PATIENCE = 300.0
"""Seconds without any progress after which a test fails."""


def wait_while_it_moves(
    find: Callable[[], Found | None], progress: Callable[[], object], patience: float = PATIENCE
) -> Found:
    """Return the first true result of `find`; the test fails once nothing has moved for a while.

    Args:
        find: Returns a false value until the awaited event has happened.
        progress: Returns a value that changes whenever something has moved towards the event.
        patience: Seconds for which `progress` may stay the same.
    """
    seen, give_up_at = progress(), time.monotonic() + patience
    while not (found := find()):
        if (now := progress()) != seen:
            seen, give_up_at = now, time.monotonic() + patience
        assert time.monotonic() < give_up_at, f"nothing moved for {patience:g} s; last seen: {seen}"
        time.sleep(0.3)
    return found


def num_epochs(found: tuple[RunResult, ...]) -> int:
    """Return the number of stored epochs of all runs."""
    return sum(len(result.facts) for result in found)
