"""Signals: SIGTERM and SIGHUP end a command in the same way as Ctrl-C."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from sweeps.machine.command_line import this_command

# Frozen: exit code, which scripts check; tests/sweeps/machine/test_signals.py fails.
INTERRUPTED = 130
"""Exit code after an interrupt."""


def spell_interrupt() -> str:
    """Return the message of an interrupted command, with the command line that continues it."""
    if (command := this_command()) is None:
        return "interrupted; the same call continues where this one stopped"
    return f"interrupted; to continue, run\n{command}"


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a command: SIGINT, SIGTERM (pre-emption) and SIGHUP.

    SIGHUP is left out if it is ignored, as under `nohup`.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return tuple(signals)


def hear(handler: Callable[[int, FrameType | None], Any] = signal.default_int_handler) -> None:
    """Install a handler of the ending signals, in a process that belongs to `mixsweep`."""
    _heard.set()
    for number in ending_signals():
        signal.signal(number, handler)


def owns_process() -> bool:
    """Return True if the command line has installed handlers.

    In any other process, such as a notebook, no handler changes and no process is ended.
    """
    return _heard.is_set()


_heard = threading.Event()
_given_endings: list[tuple[str, int]] = []


def interrupt_main_thread(ending: tuple[str, int]) -> None:
    """Raise `KeyboardInterrupt` in the main thread; `ending` is the last message and exit code."""
    if not owns_process():
        return
    _given_endings.append(ending)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def given_ending() -> tuple[str, int] | None:
    """Return message and exit code of `interrupt_main_thread`; None if it was not called."""
    return _given_endings[0] if _given_endings else None


_open_arrivals: list[Callable[[], bool]] = []
"""The function that the open `arrivals` block of this process has yielded; empty without one."""
_arrived_at: list[float] = []
"""Latest time at which the first signal of the open `arrivals` block can have come, and earliest
times of the later ones, on the monotonic clock; a busy machine looks late."""
_APART = 0.4
"""Seconds between two signals that count as two: a terminal that closes sends SIGHUP twice."""


@contextmanager
def arrivals() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True, in any thread, once an ending signal has arrived.

    A handler runs only after the main thread has returned from C code, and a library may catch its
    exception. A nested block yields the function of the outer block. In another thread, and in a
    process that does not belong to `mixsweep`, the function always returns False.
    """
    if not owns_process() or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    if _open_arrivals:
        yield _open_arrivals[0]
        return
    have_come, looked_at = False, time.monotonic()
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

        def look() -> bool:
            nonlocal have_come, looked_at
            earliest, looked_at = looked_at, time.monotonic()
            with suppress(OSError):  # no signal has come, or the context is closed
                if not set(ending_signals()).isdisjoint(reader.recv(4096)):
                    have_come = True
                    _arrived_at.append(earliest if _arrived_at else time.monotonic())
            return have_come

        _open_arrivals.append(look)
        try:
            yield look
        finally:
            _open_arrivals.clear()
            _arrived_at.clear()
            signal.set_wakeup_fd(before)


def came_again() -> bool:
    """Return True once a second signal has arrived in the open `arrivals` block."""
    return bool(_arrived_at) and _arrived_at[-1] - _arrived_at[0] >= _APART


def leave(number: int, frame: FrameType | None) -> None:
    """Signal handler that ends this process at once, with exit code 130 or that of `given_ending`.

    It is installed once a command has printed how it ends: a second Ctrl-C then does not wait.
    """
    del number, frame
    _, code = given_ending() or ("", INTERRUPTED)
    os._exit(code)


def leave_saying_so(number: int, frame: FrameType | None) -> None:
    """Signal handler that prints the last message of this process, and ends it at once."""
    message, _ = given_ending() or (spell_interrupt(), INTERRUPTED)
    with suppress(OSError):  # the reader may be gone
        os.write(2, f"{message}\n".encode(errors="backslashreplace"))
    leave(number, frame)
