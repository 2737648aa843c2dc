"""Signals that end a command in the same way as Ctrl-C."""

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
"""Message of an interrupted command that can be resumed."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM (sent before preemption) and SIGHUP (sent when a terminal closes).

    SIGHUP is left out if it is ignored, as under `nohup`.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return tuple(signals)


def hear(handler: Callable[[int, FrameType | None], Any] = signal.default_int_handler) -> None:
    """Install a handler for the ending signals; by default they raise `KeyboardInterrupt`."""
    for number in ending_signals():
        signal.signal(number, handler)


@contextmanager
def arrivals() -> Iterator[Callable[[], bool]]:
    """Yield a function, for any thread, that returns True once an ending signal has arrived.

    A signal handler runs only when the main thread returns from C code, and a library may swallow
    the exception that it raises; this function knows at once and permanently. Enter the context in
    the main thread, and not nested.
    """
    have_come = False
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

        def look() -> bool:
            nonlocal have_come
            with suppress(OSError):  # no signal has come, or the context is closed
                have_come |= not set(ending_signals()).isdisjoint(reader.recv(4096))
            return have_come

        try:
            yield look
        finally:
            signal.set_wakeup_fd(before)


def leave(number: int, frame: FrameType | None) -> None:
    """End this process at once with the exit code of an interrupt; handles a second signal."""
    del number, frame
    os._exit(INTERRUPTED)


def leave_saying_so(number: int, frame: FrameType | None) -> None:
    """Print the message of an interrupt and end this process; handles signals before any work."""
    os.write(2, f"{GOES_ON}\n".encode())
    leave(number, frame)
