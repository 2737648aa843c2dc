"""Signals that end a command as Ctrl-C does."""

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""Exit code of a process that such a signal has ended."""
GOES_ON = "interrupted; the same command goes on where it stopped"
"""What it says then."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM (what preempts a machine) and SIGHUP (a terminal that goes away).

    SIGHUP is left out where it is ignored, as under `nohup`.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return tuple(signals)


def hear(handler: Callable[[int, FrameType | None], Any] = signal.default_int_handler) -> None:
    """Let a handler hear them; without one they raise `KeyboardInterrupt`."""
    for number in ending_signals():
        signal.signal(number, handler)


def leave(number: int, frame: FrameType | None) -> None:
    """End this process as an interrupted one, here and now: the handler of a second signal."""
    del number, frame
    os._exit(INTERRUPTED)


def leave_saying_so(number: int, frame: FrameType | None) -> None:
    """End it likewise, and say what a first signal says: while nothing has begun."""
    os.write(2, f"{GOES_ON}\n".encode())
    leave(number, frame)
