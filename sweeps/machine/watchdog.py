"""Watchdog: ends this process if its main thread does not react to an interrupt or to a loss."""

import faulthandler
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import NoReturn

from sweeps.machine.processes import end_children
from sweeps.machine.signals import (
    INTERRUPTED,
    arrivals,
    came_again,
    given_ending,
    interrupt_main_thread,
    spell_interrupt,
)

LOST = 1
"""Exit code after a loss, such as that of Ray's control process."""
_LOOK_EVERY = 0.1
_PATIENCE = 15.0
"""Seconds; longer than an interrupted launch needs to clean up, also if Ray does not answer."""
_PATIENCE_WITH_LOSSES = 5.0
_GRACE = 2.0
"""Seconds that a block has to end by itself after a loss: a terminal sends Ctrl-C to all processes,
so that a loss may be seen before the interrupt that caused it."""
_TO_CLEAN_UP, _TO_PRINT = 5.0, 1.0
_DEBUGGERS = {"bdb", "pdb", "pydevd"}
"""Modules of debuggers, for which Ctrl-C is a command."""
_cleanups: list[Callable[[], None]] = []


@dataclass(kw_only=True)
class _Block:
    """An open `with` block that is watched."""

    patience: float
    lost: Callable[[], str | None] = lambda: None
    every: float = _LOOK_EVERY
    look_at: float = field(default_factory=time.monotonic)
    told: str | None = None
    """Message about the loss for which the main thread was interrupted."""


_blocks: list[_Block] = []
"""The open blocks, the innermost last. One thread watches them all."""


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

    Call this in a thread, when the main thread does not react; PYTHONFAULTHANDLER shows its stack.
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

    A second signal ends it at once. Needed if a library catches `KeyboardInterrupt`, or the main
    thread waits for a lock. A process in a debugger is not ended.
    """
    with arrivals() as is_interrupted, _watched(_Block(patience=patience), is_interrupted):
        yield


@contextmanager
def interrupted_if_lost(
    lost: Callable[[], str | None], error: type[Exception], *, every: float
) -> Iterator[None]:
    """Interrupt the `with` block and raise `error` after the loss of something that it needs.

    `lost`, which a thread calls, returns a message about a loss, or None. If the main thread does
    not react, the process ends with code 1. A swallowed interrupt is raised at the end.
    """
    block = _Block(patience=_PATIENCE_WITH_LOSSES, lost=lost, every=every)

    def cause() -> BaseException | None:
        if block.told is not None:
            return error(block.told)
        return KeyboardInterrupt() if is_interrupted() else None

    with arrivals() as is_interrupted, _watched(block, is_interrupted):
        try:
            yield
        except BaseException as raised:
            if (loss := cause()) is None:
                raise
            raise loss from raised
        if (loss := cause()) is not None:  # its exception was swallowed
            raise loss


@contextmanager
def _watched(block: _Block, is_interrupted: Callable[[], bool]) -> Iterator[None]:
    thread: AbstractContextManager[None] = nullcontext() if _blocks else _thread(is_interrupted)
    _blocks.append(block)
    try:
        with thread:
            yield
    finally:
        _blocks.remove(block)


@contextmanager
def _thread(is_interrupted: Callable[[], bool]) -> Iterator[None]:
    over = threading.Event()
    watching = threading.Thread(
        target=_watch, args=[over, is_interrupted], name="watchdog", daemon=True
    )
    watching.start()
    try:
        yield
    finally:
        over.set()


def _watch(over: threading.Event, is_interrupted: Callable[[], bool]) -> None:
    """Watch the open blocks: interrupt the main thread after a loss, then end the process."""
    while not is_interrupted():
        if over.wait(_LOOK_EVERY):
            return
        block, message = _loss()
        if block is None:
            continue
        give_up_at = time.monotonic() + _GRACE
        while block in _blocks and not is_interrupted() and time.monotonic() < give_up_at:
            if over.wait(_LOOK_EVERY):
                return
        if block in _blocks and not is_interrupted():
            block.told = message
            interrupt_main_thread((message, LOST))
            break
    began = time.monotonic()
    while not came_again():
        end_at = began + min(block.patience for block in _blocks or [_Block(patience=_PATIENCE)])
        if time.monotonic() >= end_at or over.wait(_LOOK_EVERY):
            break
        is_interrupted()
    if over.is_set() or _is_debugged():
        return
    ending = given_ending() or (spell_interrupt(), INTERRUPTED)
    end_by_force(*ending, _TO_PRINT if came_again() else _TO_CLEAN_UP)


def _loss() -> tuple[_Block, str] | tuple[None, str]:
    """Return an open block that has lost something, and the message about it."""
    for block in tuple(_blocks):
        if (now := time.monotonic()) >= block.look_at:
            block.look_at = now + block.every
            with suppress(Exception):  # a process ended while it was looked at
                if (message := block.lost()) is not None:
                    return block, message
    return None, ""


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
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False
