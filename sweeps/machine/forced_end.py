"""Forced end: end this process although its main thread does not react to an interrupt."""

import faulthandler
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from sweeps.machine.processes import end_children
from sweeps.machine.signals import (
    GOES_ON,
    INTERRUPTED,
    arrivals,
    came_again,
    given_ending,
    is_self_interrupted,
)

_LOOK_EVERY = 0.1
_PATIENCE = 15.0
"""Seconds; longer than an interrupted launch needs to clean up, also if Ray does not answer."""
_TO_CLEAN_UP, _TO_PRINT = 5.0, 1.0
_DEBUGGERS = {"bdb", "pdb", "pydevd"}
"""Modules of debuggers, for which Ctrl-C is a command."""
_cleanups: list[Callable[[], None]] = []


@contextmanager
def cleaned_by_force(cleanup: Callable[[], None]) -> Iterator[None]:
    """Call a cleanup if this process is ended by force during the `with` block."""
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


def end_by_force(told: str, code: int, patience: float = _TO_CLEAN_UP) -> NoReturn:
    """Kill the children of this process, clean up, print a message, and end this process.

    Call this in a thread, when the main thread does not react. The process ends whatever fails,
    also if nobody reads its output. With PYTHONFAULTHANDLER set, it first prints the stack of each
    thread.
    """
    try:
        end_children()
        # While it writes, no other thread runs.
        if faulthandler.is_enabled() and select.select([], [2], [], 0)[1]:
            faulthandler.dump_traceback(file=2)
        _call_each(reversed(_cleanups), patience)
        _call_each([lambda: print(told, file=sys.stderr, flush=True)], _TO_PRINT)  # noqa: T201
    finally:
        os._exit(code)


@contextmanager
def ended_if_interrupted(*, patience: float = _PATIENCE) -> Iterator[None]:
    """End this process if the `with` block does not end soon after SIGINT, SIGTERM or SIGHUP.

    A second signal ends it at once.

    An interrupt raises `KeyboardInterrupt` only once. So the block does not end if a library
    catches the exception, or if the main thread then waits for a lock. A process that is in a
    debugger, or that has interrupted itself without a `given_ending`, is not ended. Use this
    context in the main thread. It has no effect while C code keeps Python's global lock (GIL).
    """
    over = threading.Event()
    with arrivals() as is_interrupted:

        def watch() -> None:
            while not is_interrupted():
                if over.wait(_LOOK_EVERY):
                    return
            give_up_at = time.monotonic() + patience
            while not came_again() and time.monotonic() < give_up_at:
                if over.wait(min(_LOOK_EVERY, patience)):
                    return
                is_interrupted()
            if _is_debugged():
                return
            to_clean_up = _TO_PRINT if came_again() else _TO_CLEAN_UP
            if (ending := given_ending()) is not None:
                end_by_force(*ending, to_clean_up)
            if came_again() or not is_self_interrupted():
                end_by_force(GOES_ON, INTERRUPTED, to_clean_up)

        try:
            threading.Thread(target=watch, name="interrupts", daemon=True).start()
            yield
        finally:
            over.set()


def _call_each(functions: Iterable[Callable[[], None]], timeout: float) -> None:
    """Call functions one after another; wait at most `timeout` seconds for each; ignore errors."""

    def call(function: Callable[[], None]) -> None:
        with suppress(Exception):
            function()

    for function in functions:
        thread = threading.Thread(target=call, args=[function], daemon=True)
        thread.start()
        thread.join(timeout)


def _is_debugged() -> bool:
    """Return True if the main thread is in a debugger."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False
