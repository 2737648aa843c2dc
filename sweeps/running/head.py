"""Head: watches the Ray processes that a launch needs, and ends the launch soon after one dies."""

import re
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psutil

from mixup_core.rules import printable
from sweeps.machine.address_space import spell_limit
from sweeps.machine.processes import children, lives
from sweeps.machine.watchdog import interrupted_if_lost

_LOOK_EVERY, _LOOK_EVERY_STARTING = 1.0, 0.25
_OWN = ("gcs_server", "raylet")
"""Processes of a cluster started by us without which Ray cannot work."""
_ERROR = re.compile(r"\[[^\]]* [EFC] \d+ \d+\] (\(\w+\) )?([\w./]+:\d+: )?")
"""Beginning of a logged line of Ray about an error: time, severity, process, thread, place."""
_LONGEST = 200
_SILENCE = 8.0
"""Seconds without an answer after which the control process (GCS) of another's cluster is dead."""
_JOINS_WITHIN = 30.0
"""Seconds that this process has to join a cluster that answers."""


class HeadLostError(Exception):
    """The Ray cluster of a launch did not start, or has died; the message is for the user."""


class Head:
    """Watches the control process (GCS) of a Ray cluster in a thread.

    If this process started the cluster, the raylet is watched too.

    After the GCS has died, Ray itself waits for a minute and then ends the process from C++ at any
    point. This class instead interrupts the main thread as Ctrl-C does. If the main thread does not
    react because it waits inside Ray, the process is ended.
    """

    def __init__(self, address: str, *, is_own: bool, silence: float = _SILENCE) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        own = _needed(filter(lives, children()))
        self._own = dict.fromkeys(_OWN) | own if is_own else {}
        self._answered_at = time.monotonic()
        self._silence = silence

    def watched(self) -> AbstractContextManager[None]:
        return interrupted_if_lost(self._lost, HeadLostError, every=_LOOK_EVERY)

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
            socket.create_connection(self._address, timeout=self._silence).close()
            self._answered_at = time.monotonic()
        except OSError as error:
            silence = time.monotonic() - self._answered_at
            if silence > self._silence:
                host, port = self._address
                return f"Ray at {host}:{port} has not answered for {silence:.0f} s ({error})"
        return None


def starting(folder: Path) -> AbstractContextManager[None]:
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
        return ended and not_started(ended, folder)

    return interrupted_if_lost(lost, HeadLostError, every=_LOOK_EVERY_STARTING)


def joining(address: str) -> AbstractContextManager[None]:
    give_up_at = time.monotonic() + _JOINS_WITHIN

    def lost() -> str | None:
        is_late = time.monotonic() > give_up_at
        said = f"{address}: Ray could not join this cluster within {_JOINS_WITHIN:.0f} s"
        return f"{said}; run the same command again to retry" if is_late else None

    return interrupted_if_lost(lost, HeadLostError, every=_LOOK_EVERY_STARTING)


def not_started(reason: str, folder: Path) -> str:
    """Return the message for a Ray cluster that did not start: reason, logged cause, advice."""
    if logged := _logged(folder):
        reason = f"{reason}; {logged}"
    limit = spell_limit()
    advice = f"{limit}; then " if limit else ""
    return (
        f"Ray did not start on this machine ({reason}); {advice}run the same command again to "
        "retry, or add --engine inline to train without Ray"
    )


def _logged(folder: Path) -> str | None:
    """Return the last error that Ray's own processes have logged, with the file; None without."""
    files = [f for name in _OWN for f in folder.glob(f"session_2*/logs/{name}.[oe][ur][tr]")]
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        lines = file.read_text(errors="replace").splitlines()
        is_log = file.suffix == ".out"
        errors = [line for line in lines if _ERROR.match(line) or (line.strip() and not is_log)]
        if errors:
            return f"{file.name}: {printable(_ERROR.sub('', errors[-1]).strip())[:_LONGEST]}"
    return None


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
