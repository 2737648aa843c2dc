"""Processes: check whether processes are alive, adopt orphans, and kill child processes."""

import ctypes
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import psutil

_LOOK_EVERY = 0.01
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37
"""Operations of prctl(2), Linux."""

_spared: set[psutil.Process] = set()


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


def below(process: psutil.Process) -> set[psutil.Process]:
    try:
        return set(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def wait_for_end(processes: Iterable[psutil.Process], timeout: float) -> None:
    """Wait until processes have ended, or `timeout` is over; zombies count as ended."""
    waited = list(processes)
    give_up_at = time.monotonic() + timeout
    while any(map(lives, waited)) and time.monotonic() < give_up_at:
        time.sleep(_LOOK_EVERY)


def spare_children() -> None:
    """Exclude the present children of this process, and their descendants, from `end_children`.

    Call this at the start of a command. A process has children from the start if a shell starts
    some and then becomes this process by `exec`, as in the entry points of containers.
    """
    _spared.update(children(recursive=True))


def end_children() -> None:
    """Kill all descendants of this process, except those that `spare_children` excludes.

    Stored results are kept. Ray cannot be used in this process afterwards: end the process with
    `os._exit`.
    """
    for child in children(recursive=True).difference(_spared, *map(below, _spared)):
        with suppress(psutil.Error):  # a child of another user cannot be killed
            child.kill()


@contextmanager
def adopting() -> Iterator[None]:
    """Make this process, in a `with` block, the new parent of descendants whose parents die.

    For example, a worker that starts while its parent, Ray's raylet, is killed stays a descendant
    of this process, so that it can be found and killed. Otherwise it would create the launch's
    temporary folder again after its removal. At the end of the block, processes that have become
    children of this process and have ended are reaped.
    """
    before = children()
    earlier = ctypes.c_int()
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:  # no Linux
        yield
        return
    prctl(_GET_CHILD_SUBREAPER, ctypes.byref(earlier), 0, 0, 0)
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_CHILD_SUBREAPER, earlier.value, 0, 0, 0)
        for child in children() - before:
            with suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)
