"""Forced end: end this process although its main thread does not react to an interrupt."""

import faulthandler
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from sweeps.machine.processes import end_children
from sweeps.machine.signals import GOES_ON, INTERRUPTED, arrivals

_LOOK_EVERY = 0.5
_PATIENCE = 15.0
"""Seconds; longer than an interrupted launch needs to clean up, also if Ray does not answer."""
_TO_LEAVE = 5.0


def end_by_force(told: str, code: int, leave: Callable[[], None], patience: float) -> NoReturn:
    """Kill all descendants of this process, clean up, print a message, and end this process.

    Call this in a thread, when the main thread does not react. The process ends whatever fails.
    With PYTHONFAULTHANDLER set, it first prints what each thread is doing.

    Args:
        told: The message, the last output of this process.
        code: Exit code.
        leave: Cleanup, called in a thread.
        patience: Seconds that the cleanup may take.
    """
    try:
        with suppress(OSError):
            if faulthandler.is_enabled():
                faulthandler.dump_traceback(file=2)
        end_children()
        leaving = threading.Thread(target=leave, name="leaving", daemon=True)
        leaving.start()
        leaving.join(patience)
        with suppress(OSError, ValueError):  # the reader may be gone
            print(told, file=sys.stderr, flush=True)  # noqa: T201  the last output of this process
    finally:
        os._exit(code)


@contextmanager
def ended_if_interrupted(
    leave: Callable[[], None], *, patience: float = _PATIENCE
) -> Iterator[None]:
    """End this process if the `with` block does not end soon after SIGINT, SIGTERM or SIGHUP.

    An interrupt raises `KeyboardInterrupt` only once. The block does not end if a library swallows
    the exception, or if the main thread waits for a lock after it. Use this context in the main
    thread.

    Args:
        leave: Cleanup that is called in a thread before this process is ended by force.
        patience: Seconds from the signal until the process is ended.
    """
    over = threading.Event()
    with arrivals() as is_interrupted:

        def watch() -> None:
            while not is_interrupted():
                if over.wait(_LOOK_EVERY):
                    return
            if not over.wait(patience):
                end_by_force(GOES_ON, INTERRUPTED, leave, _TO_LEAVE)

        threading.Thread(target=watch, name="interrupts", daemon=True).start()
        try:
            yield
        finally:
            over.set()
