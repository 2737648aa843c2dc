"""Head: watches the Ray processes that a launch needs, and ends the launch soon after one dies."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

import psutil

from sweeps.machine.address_space import spell_limit
from sweeps.machine.forced_end import end_by_force
from sweeps.machine.processes import children, lives
from sweeps.machine.signals import (
    GOES_ON,
    INTERRUPTED,
    arrivals,
    given_ending,
    interrupt_main_thread,
)

_LOOK_EVERY_STARTING = 0.25
_OWN = ("gcs_server", "raylet")
"""Processes of a cluster started by us without which Ray cannot work."""
_JOINS_WITHIN = 30.0
"""Seconds that this process has to join a cluster that answers."""
_CODE = 1


class HeadLostError(Exception):
    """The Ray cluster of a launch did not start, or has died; the message is for the user."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """Intervals and time limits for watching Ray's processes, in seconds."""

    look_every: float = 1.0
    """Time between two checks of a cluster that has started."""
    silence: float = 8.0
    """Time without an answer after which the control process (GCS) counts as dead; used for a
    cluster that this process did not start."""
    grace: float = 2.0
    """Time that the watched block has to end by itself after Ray has died or a signal such as
    Ctrl-C has arrived. After this time, the main thread is interrupted if Ray has died; the process
    is ended if a signal has arrived."""
    patience: float = 5.0
    """Time that the main thread has to react to the interrupt after Ray has died, before the
    process is ended. It is also the time limit of the cleanups when the process is ended."""


_TIMES = Times()


class Head:
    """Watches the control process (GCS) of a Ray cluster in a thread.

    If this process started the cluster, the raylet is watched too.

    After the GCS has died, Ray itself waits for a minute and then ends the process from C++ at any
    point. This class instead interrupts the main thread as Ctrl-C does. If the main thread does not
    react because it waits inside Ray, the process is ended.
    """

    def __init__(self, address: str, *, is_own: bool, times: Times = _TIMES) -> None:
        """Find the Ray processes to watch; watching begins with `watched`."""
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        own = _needed(filter(lives, children()))
        self._own = dict.fromkeys(_OWN) | own if is_own else {}
        self._answered_at = time.monotonic()
        self._times = times

    def watched(self) -> AbstractContextManager[None]:
        """Return a context manager that watches this Ray cluster during its block."""
        return _watched(self._lost, self._times.look_every, self._times)

    def _lost(self) -> str | None:
        gone = self._gone()
        return gone and (
            f"the Ray cluster has died: {gone}; stored epochs are kept: run the same command again "
            "to continue"
        )

    def _gone(self) -> str | None:
        """Return the name of a Ray process that has died; None if all are alive."""
        if ended := _ended_of(self._own):
            return ended
        if self._own:
            return None
        try:
            socket.create_connection(self._address, timeout=self._times.silence).close()
            self._answered_at = time.monotonic()
        except OSError as error:
            silence = time.monotonic() - self._answered_at
            if silence > self._times.silence:
                host, port = self._address
                return f"Ray at {host}:{port} has not answered for {silence:.0f} s ({error})"
        return None


def starting(*, times: Times = _TIMES) -> AbstractContextManager[None]:
    """Return a context manager that watches the Ray processes which its block starts.

    Without it, Ray waits a minute for its control process (GCS), or ends this process from C++ if
    its raylet has died.
    """
    of_before = frozenset(children())  # includes those of a failed start
    own: dict[str, psutil.Process] = {}

    def lost() -> str | None:
        if len(own) < len(_OWN):
            own.update(_needed(children() - of_before))
        ended = _ended_of(own)
        return ended and not_started(ended)

    return _watched(lost, _LOOK_EVERY_STARTING, times)


def joining(address: str) -> AbstractContextManager[None]:
    """Return a context manager that limits the time in which its block joins a Ray cluster."""
    give_up_at = time.monotonic() + _JOINS_WITHIN

    def lost() -> str | None:
        is_late = time.monotonic() > give_up_at
        said = f"{address}: Ray could not join this cluster within {_JOINS_WITHIN:.0f} s"
        return f"{said}; run the same command again to retry" if is_late else None

    return _watched(lost, _LOOK_EVERY_STARTING)


def not_started(reason: str) -> str:
    """Return the message for a Ray cluster that did not start, with the reason and advice."""
    limit = spell_limit()
    advice = f"{limit}; then " if limit else ""
    return (
        f"Ray did not start on this machine ({reason}); {advice}run the same command again to retry"
    )


@contextmanager
def _watched(
    lost: Callable[[], str | None],
    every: float,
    times: Times = _TIMES,
) -> Iterator[None]:
    """Watch in a thread for a loss, such as a dead process, while the block runs."""
    over = threading.Event()
    found: list[str] = []

    def watch(is_interrupted: Callable[[], bool]) -> None:
        told = None
        while told is None:
            if over.wait(every):
                return
            with suppress(psutil.Error, OSError):  # a process ended while it was looked at
                told = GOES_ON if is_interrupted() else lost()
        if over.wait(times.grace):
            return
        ending = GOES_ON, INTERRUPTED
        if not is_interrupted():
            ending = told, _CODE
            found.append(told)
            interrupt_main_thread()
            if over.wait(times.patience):
                return
        end_by_force(*(given_ending() or ending), times.patience)

    with arrivals() as is_interrupted:
        try:
            threading.Thread(target=watch, args=[is_interrupted], name="head", daemon=True).start()
            yield
        except BaseException as error:
            if (cause := _cause(found, is_interrupted)) is None:
                raise
            raise cause from error
        finally:
            over.set()
        if (cause := _cause(found, is_interrupted)) is not None:  # its exception was swallowed
            raise cause


def _cause(found: Sequence[str], is_interrupted: Callable[[], bool]) -> BaseException | None:
    """Return the error to raise for lost Ray processes or an interrupt; None if neither happened.

    Args:
        found: Messages about losses.
        is_interrupted: Returns True once a signal such as Ctrl-C has arrived.
    """
    if found:
        return HeadLostError(*found)
    return KeyboardInterrupt() if is_interrupted() else None


def _needed(processes: Iterable[psutil.Process]) -> dict[str, psutil.Process]:
    """Return those of some processes that a Ray cluster cannot work without, by name."""
    found = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.name() in _OWN:
                found[process.name()] = process
    return found


def _ended_of(own: Mapping[str, psutil.Process | None]) -> str | None:
    """Return the name of a process that has ended; None if all are alive."""
    for name, process in own.items():
        if process is None:
            return f"Ray's process {name} has ended"
        if not lives(process):
            return f"Ray's process {name} (pid {process.pid}) has ended"
    return None
