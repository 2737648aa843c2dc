"""Processes: the user of this one, whether others are alive, and how to kill child processes."""

import getpass
import os
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from mixup_core.rules import printable

_LOOK_EVERY = 0.01

_spared: set[psutil.Process] = set()


def user() -> str:
    """Return the name of the user of this process, such as `user-1000` without a name."""
    try:
        return printable(getpass.getuser())
    except (KeyError, OSError):
        return f"user-{os.geteuid()}"


def lives(process: psutil.Process) -> bool:
    """Return True while a process is running; a zombie counts as ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children(*, recursive: bool = False) -> set[psutil.Process]:
    """Return the children of this process; none if this system hides processes (no `/proc`)."""
    try:
        return set(psutil.Process().children(recursive=recursive))
    except (psutil.Error, OSError):
        return set()


def wait_for_end(processes: Iterable[psutil.Process], timeout: float) -> None:
    """Wait until processes have ended, or `timeout` is over; zombies count as ended."""
    waited = list(processes)
    give_up_at = time.monotonic() + timeout
    while any(map(lives, waited)) and time.monotonic() < give_up_at:
        time.sleep(_LOOK_EVERY)


def spare_children() -> None:
    """Exclude the present children of this process, and their descendants, from `end_children`.

    A shell may have started them and then have become this process by `exec`.
    """
    _spared.update(children(recursive=True))


def end_children() -> None:
    """Kill the descendants of this process, except those that `spare_children` excluded.

    Processes of Ray are among them, so this process must then end by `os._exit`.
    """
    spared = set(_spared)
    for process in _spared:
        with suppress(psutil.NoSuchProcess):
            spared.update(process.children(recursive=True))
    for child in children(recursive=True) - spared:
        with suppress(psutil.Error):  # a child of another user cannot be killed
            child.kill()
