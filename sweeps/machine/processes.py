"""Processes of this machine: whether one lives, and the end of those below this one."""

import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

_LOOK_EVERY = 0.01


def lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended; who started it may still be told how it did."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_end(processes: Iterable[psutil.Process], timeout: float) -> None:
    """Wait until processes have ended, whether or not who started them has asked how.

    Args:
        processes: Any.
        timeout: Seconds after which it is not waited any more.
    """
    waited = list(processes)
    give_up_at = time.monotonic() + timeout
    while any(map(lives, waited)) and time.monotonic() < give_up_at:
        time.sleep(_LOOK_EVERY)


def end_children() -> None:
    """Kill every process below this one, as if it had been killed itself; who stored, has stored.

    What is left of Ray in this process must not be used any more: end it with `os._exit`.
    """
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
