"""Head: what a launch's Ray cluster stands on; when it is gone, the launch ends within seconds."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import psutil

from sweeps.machine.processes import end_children, lives
from sweeps.machine.signals import GOES_ON, INTERRUPTED, arrivals

_LOOK_EVERY = 1.0
_LOOK_EVERY_STARTING = 0.25
_OWN = ("gcs_server", "raylet")
"""Processes that a cluster of our own starts below this one and cannot live without."""
_SILENCE = 8.0
"""Seconds without an answer after which the GCS of a cluster elsewhere is taken for gone."""
_GRACE = 2.0
"""Seconds within which a launch that lost its cluster or was interrupted may be about to end."""
_PATIENCE = 5.0
"""Seconds for which the main thread may hear that the cluster is gone."""
_JOINS_WITHIN = 30.0
"""Seconds for a cluster that answers to let this process join."""
_CODE = 1


class HeadLostError(Exception):
    """The Ray cluster of a launch did not start, or is gone; the text says so to the user."""


class Head:
    """Looks after the GCS, and after the raylet of a cluster of our own, in a thread.

    Ray itself waits for a GCS that is gone: after a minute it ends the process, from C++, whatever
    that is about. Here the main thread is interrupted as by Ctrl-C, and where it hears nothing,
    since it waits within Ray, the process is ended all the same.
    """

    def __init__(self, address: str, *, is_own: bool) -> None:
        """Know what to look at; `watched` looks.

        Args:
            address: Of the GCS, HOST:PORT.
            is_own: Whether this process started it.
        """
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        own = _needed(filter(lives, psutil.Process().children()))
        self._own = dict.fromkeys(_OWN) | own if is_own else {}
        self._answered_at = time.monotonic()

    def watched(self, leave: Callable[[], None]) -> AbstractContextManager[None]:
        """Look after it within a `with`.

        Args:
            leave: Called, for seconds at most, before a process ends that hears no interrupt.

        Raises:
            HeadLostError: If it is gone, in place of what came of that.
            KeyboardInterrupt: If an ending signal came, in place of what came of that.
        """
        return _watched(self._lost, _LOOK_EVERY, leave)

    def _lost(self) -> str | None:
        gone = self._gone()
        return gone and (
            f"Ray is gone: {gone}; what was trained is stored, and the same command again goes on "
            "where it stopped"
        )

    def _gone(self) -> str | None:
        """Return the part of Ray that has ended; None if all live."""
        if ended := _ended_of(self._own):
            return ended
        if self._own:
            return None
        try:
            socket.create_connection(self._address, timeout=_SILENCE).close()
            self._answered_at = time.monotonic()
        except OSError as error:
            silence = time.monotonic() - self._answered_at
            if silence > _SILENCE:
                host, port = self._address
                return f"{host}:{port} has not answered for {silence:.0f} s ({error})"
        return None


def starting(leave: Callable[[], None]) -> AbstractContextManager[None]:
    """Look after what Ray starts within a `with`, as `Head.watched` does after a whole cluster.

    Ray waits a minute for its GCS, ends the process from C++ where its raylet is gone, or raises.

    Args:
        leave: As for `Head.watched`.

    Raises:
        HeadLostError: If some of it is gone before that is over.
        KeyboardInterrupt: If an ending signal came, in place of what came of that.
    """
    of_before = frozenset(psutil.Process().children())  # a start that failed, and is dying yet
    own: dict[str, psutil.Process] = {}

    def lost() -> str | None:
        if len(own) < len(_OWN):
            own.update(_needed(set(psutil.Process().children()) - of_before))
        ended = _ended_of(own)
        return ended and not_started(ended)

    return _watched(lost, _LOOK_EVERY_STARTING, leave)


def joining(address: str, leave: Callable[[], None]) -> AbstractContextManager[None]:
    """Let Ray join a cluster within a `with`, for as long as that takes and not for minutes.

    Args:
        address: Of the cluster, for the message.
        leave: As for `Head.watched`.

    Raises:
        HeadLostError: If the cluster does not answer.
        KeyboardInterrupt: If an ending signal came, in place of what came of that.
    """
    give_up_at = time.monotonic() + _JOINS_WITHIN

    def lost() -> str | None:
        is_late = time.monotonic() > give_up_at
        said = f"{address}: Ray could not join this cluster within {_JOINS_WITHIN:.0f} s"
        return f"{said}; the same command again tries again" if is_late else None

    return _watched(lost, _LOOK_EVERY_STARTING, leave)


def not_started(reason: str) -> str:
    """Return the message for a launch whose Ray did not start."""
    return f"Ray did not start on this machine ({reason}); the same command again tries again"


@contextmanager
def _watched(
    lost: Callable[[], str | None], every: float, leave: Callable[[], None]
) -> Iterator[None]:
    """Ask in a thread what is lost; once something is, a `with` raises that, or the process ends.

    The main thread is interrupted; where it hears nothing, as it waits within Ray, that is the end.
    So it is for an ending signal that it does not hear. One to all processes of a terminal or job
    ends Ray's too: then that is what has happened.

    Args:
        lost: Returns what to tell the user; None as long as nothing is lost.
        every: Seconds between two looks.
        leave: As for `Head.watched`.

    Raises:
        HeadLostError: If something is lost, in place of what came of that.
        KeyboardInterrupt: If an ending signal came, in place of what came of that.
    """
    over = threading.Event()
    found: list[str] = []

    def watch(is_interrupted: Callable[[], bool]) -> None:
        told = None
        while told is None:
            if over.wait(every):
                return
            told = GOES_ON if is_interrupted() else lost()
        if over.wait(_GRACE):
            return
        code = _CODE
        if is_interrupted():
            told, code = GOES_ON, INTERRUPTED
        else:
            found.append(told)
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)
            if over.wait(_PATIENCE):
                return
        end_children()
        leaving = threading.Thread(target=leave, name="leaving", daemon=True)
        leaving.start()
        leaving.join(_PATIENCE)
        with suppress(OSError, ValueError):  # nobody may be reading any more
            print(told, file=sys.stderr, flush=True)  # noqa: T201  the last it can say
        os._exit(code)

    with arrivals() as is_interrupted:
        threading.Thread(target=watch, args=[is_interrupted], name="head", daemon=True).start()
        try:
            yield
        except BaseException as error:
            if (cause := _cause(found, is_interrupted)) is None:
                raise
            raise cause from error
        finally:
            over.set()
        if (cause := _cause(found, is_interrupted)) is not None:  # raised before, and vanished
            raise cause


def _cause(found: Sequence[str], is_interrupted: Callable[[], bool]) -> BaseException | None:
    """Return the error to raise: lost Ray processes or an interrupt; None if there is neither."""
    if found:
        return HeadLostError(*found)
    return KeyboardInterrupt() if is_interrupted() else None


def _needed(processes: Iterable[psutil.Process]) -> dict[str, psutil.Process]:
    """Return those without which a cluster cannot live, dead ones too, by name."""
    found = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.name() in _OWN:
                found[process.name()] = process
    return found


def _ended_of(own: Mapping[str, psutil.Process | None]) -> str | None:
    """Return which process has ended, of some by name; None is one that was never seen."""
    for name, process in own.items():
        if process is None:
            return f"its {name} has ended"
        if not lives(process):
            return f"its {name} (pid {process.pid}) has ended"
    return None
