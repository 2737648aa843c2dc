"""Processes: check whether processes of this machine are alive, and kill child processes."""

import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

_LOOK_EVERY = 0.01


def lives(process: psutil.Process) -> bool:
    """Return True while a process is running; a zombie counts as ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_end(processes: Iterable[psutil.Process], timeout: float) -> None:
    """Wait until processes have ended; zombies count as ended.

    Args:
        processes: The processes.
        timeout: Longest wait, in seconds.
    """
    waited = list(processes)
    give_up_at = time.monotonic() + timeout
    while any(map(lives, waited)) and time.monotonic() < give_up_at:
        time.sleep(_LOOK_EVERY)


def end_children() -> None:
    """Kill all descendants of this process.

    Stored results are kept. Ray cannot be used in this process afterwards: end the process with
    `os._exit`.
    """
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
