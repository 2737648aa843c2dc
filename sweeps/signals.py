"""Signals that end a command as Ctrl-C does."""

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any


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
    os._exit(130)
