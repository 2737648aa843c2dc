"""Head: what a launch's Ray cluster stands on; when it is gone, the launch ends within seconds."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

import psutil

_LOOK_EVERY = 1.0
_LOOK_EVERY_STARTING = 0.25
_OWN = ("gcs_server", "raylet")
"""Processes that a cluster of our own starts below this one and cannot live without."""
_SILENCE = 8.0
"""Seconds without an answer after which the GCS of a cluster elsewhere is taken for gone."""
_GRACE = 2.0
"""Seconds within which a launch whose cluster is gone may be about to end for another reason."""
_PATIENCE = 5.0
"""Seconds for which the main thread may hear that the cluster is gone."""
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
        self.lost: str | None = None
        """What is gone, once it is."""
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._own = dict.fromkeys(_OWN) | _own_below() if is_own else {}
        self._answered_at = time.monotonic()
        self._ended = threading.Event()

    @contextmanager
    def watched(self, leave: Callable[[], None]) -> Iterator[None]:
        """Look after it within a `with`.

        Args:
            leave: Called, for seconds at most, before a process ends that hears no interrupt.

        Raises:
            HeadLostError: If it is gone, in place of what came of that.
        """
        threading.Thread(target=self._watch, args=(leave,), name="head", daemon=True).start()
        try:
            yield
        except BaseException as error:
            if self.lost is None:
                raise
            raise HeadLostError(self.lost) from error
        finally:
            self._ended.set()

    def _watch(self, leave: Callable[[], None]) -> None:
        gone = None
        while gone is None:
            if self._ended.wait(_LOOK_EVERY):
                return
            gone = self._gone()
        # A signal to all processes of a terminal or job ends Ray's too, and this one by itself.
        if self._ended.wait(_GRACE):
            return
        self.lost = (
            f"Ray is gone: {gone}; what was trained is stored, and the same command again goes on "
            "where it stopped"
        )
        _interrupt(self._ended, leave, self.lost)

    def _gone(self) -> str | None:
        """Return what is gone; None if nothing is."""
        for name, process in self._own.items():
            if process is None:
                return f"its {name} has ended"
            if not _lives(process):
                return f"its {name} (pid {process.pid}) has ended"
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


@contextmanager
def starting(leave: Callable[[], None]) -> Iterator[None]:
    """Look after what Ray starts within a `with`, as `Head.watched` does after a whole cluster.

    Ray waits a minute for its GCS, ends the process from C++ where its raylet is gone, or raises.

    Args:
        leave: As for `Head.watched`.

    Raises:
        HeadLostError: If some of it is gone before that is over.
    """
    of_before = frozenset(psutil.Process().children())  # a start that failed, and is dying yet
    ended = threading.Event()
    lost: list[str] = []

    def watch() -> None:
        seen: dict[str, psutil.Process] = {}
        while all(map(_lives, seen.values())):
            if ended.wait(_LOOK_EVERY_STARTING):
                return
            seen |= _own_below(of_before) if len(seen) < len(_OWN) else {}
        gone = next(name for name, process in seen.items() if not _lives(process))
        if not ended.wait(_GRACE):
            lost.append(not_started(f"its {gone} (pid {seen[gone].pid}) has ended"))
            _interrupt(ended, leave, lost[0])

    threading.Thread(target=watch, name="starting", daemon=True).start()
    try:
        yield
    except BaseException as error:
        if not lost:
            raise
        raise HeadLostError(*lost) from error
    finally:
        ended.set()


def not_started(reason: str) -> str:
    """Return what a launch says whose Ray did not start."""
    return f"Ray did not start on this machine ({reason}); the same command again tries again"


def _interrupt(ended: threading.Event, leave: Callable[[], None], told: str) -> None:
    """Interrupt the main thread; where it hears nothing, as it waits within Ray, end the process.

    Args:
        ended: Set once it has heard.
        leave: As for `Head.watched`.
        told: Why.
    """
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)
    if not ended.wait(_PATIENCE):
        end_children()
        leaving = threading.Thread(target=leave, name="leaving", daemon=True)
        leaving.start()
        leaving.join(_PATIENCE)
        with suppress(OSError, ValueError):  # nobody may be reading any more
            print(told, file=sys.stderr, flush=True)  # noqa: T201  the last it can say
        os._exit(_CODE)


def end_children() -> None:
    """Kill every process below this one, as if it had been killed itself; who stored, has stored.

    What is left of Ray in this process must not be used any more: end it with `os._exit`.
    """
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()


def _own_below(
    besides: Collection[psutil.Process] = frozenset(),
) -> dict[str, psutil.Process]:
    """Return what this process has started of what a cluster cannot live without, by name."""
    found = {}
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child not in besides and _lives(child) and child.name() in _OWN:
                found[child.name()] = child
    return found


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
