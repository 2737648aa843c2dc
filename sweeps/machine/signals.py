"""Signals that end a command as Ctrl-C does."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""Exit code of a process that such a signal has ended."""
GOES_ON = "interrupted; the same command goes on where it stopped"
"""Message of an interrupted command that can be continued."""


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


@contextmanager
def arrivals() -> Iterator[Callable[[], bool]]:
    """Yield a function, for any thread, that returns True once a signal arrived within the `with`.

    A handler is called once the main thread is back from C, and what it raises can vanish in a
    library; this knows at once and for good. To be entered in the main thread, once at a time.
    """
    have_come = False
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

        def look() -> bool:
            nonlocal have_come
            with suppress(OSError):  # nothing has come, or all of this is over
                have_come |= not set(ending_signals()).isdisjoint(reader.recv(4096))
            return have_come

        try:
            yield look
        finally:
            signal.set_wakeup_fd(before)


def leave(number: int, frame: FrameType | None) -> None:
    """End this process as an interrupted one, here and now: the handler of a second signal."""
    del number, frame
    os._exit(INTERRUPTED)


def leave_saying_so(number: int, frame: FrameType | None) -> None:
    """End this process like `leave`, and print the message of a first signal, before work began."""
    os.write(2, f"{GOES_ON}\n".encode())
    leave(number, frame)
