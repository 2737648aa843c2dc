"""Head: the Ray cluster of a launch, checked before Ray is imported, and watched until its end."""

import os
import re
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psutil

from mixup_core.addresses import web_address
from mixup_core.rules import printable
from sweeps.machine.processes import children, lives
from sweeps.machine.resources import THRESHOLD, THRESHOLD_FORM, spell_limit
from sweeps.machine.watchdog import interrupted_if_lost
from sweeps.running.placement import PlacementError

VARIABLE = "RAY_ADDRESS"
_HERE = {"", "local"}
"""Values of RAY_ADDRESS that name no cluster. For these, Ray itself would start a cluster that is
open to everyone."""
_PATIENCE = 5.0
"""Longest check of an address, in seconds."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""First bytes that a gRPC client sends: the HTTP/2 preface and an empty settings frame."""
_SETTINGS, _FRAME = 4, struct.Struct(">3sBB4s")
"""Type of the first frame from a gRPC server, and the format of a frame header."""
_LARGEST_PORT = 65535

_CLOSED = {
    # Every port is on the loopback interface, and the token is valid for this process only.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    # The metrics are not used, and their servers require no token. Two of these have no switch, but
    # do not start on an impossible port.
    "RAY_enable_metrics_collection": "0",
    "AUTOSCALER_METRIC_PORT": "-1",
    "DASHBOARD_METRIC_PORT": "-1",
    # If the GCS dies before it has a port, Ray blocks every thread of this process for this time.
    "RAY_gcs_server_port_wait_time_s": "10",
}
_KEPT = {
    THRESHOLD: THRESHOLD_FORM,
    "RAY_memory_": r"-?\d{1,18}",
    "RAY_worker_niceness": r"-?\d{1,18}",
    "RAY_EXPERIMENTAL_NOSET_": r"-?\d{1,18}|true|false",
    "RAY_ACCEL_ENV_VAR_": r"-?\d{1,18}|true|false",
}
"""Prefixes of RAY_ variables that a cluster started by us still reads (memory, devices, CPU
priority) with the pattern of valid values, the longest prefix first. All others are removed: they
may open a port, load code, name another cluster, or end a process without a message."""
_TUNE = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    # Tune's snapshots of all trials are never read, and grow with every run.
    "TUNE_GLOBAL_CHECKPOINT_S": "inf",
    # On a busy machine Tune would warn of every slow step; a user can do nothing about it.
    "TUNE_WARN_THRESHOLD_S": "60",
}
"""Environment variables of Ray Tune that every launch sets."""
_OF_TUNE = ("TUNE_", "RAY_TUNE_", "RAY_AIR_", "RAY_TRAIN_")
"""Prefixes of the environment variables that Ray Tune reads in the driver."""


def choose_cluster(address: str | None) -> None:
    """Set RAY_ADDRESS to the Ray cluster to join; unset it to start a cluster on this machine."""
    name = VARIABLE if address is None else "--address"
    value = (os.environ.get(VARIABLE, "") if address is None else address).strip()
    if address is None and value in _HERE:
        os.environ.pop(VARIABLE, None)
        return
    host, _, port = value.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= _LARGEST_PORT
    if not (host and is_port and host.isprintable()) or set(host) & set("/@?# "):
        raise PlacementError(
            f"{name} must be HOST:PORT of a Ray cluster, got {str(web_address(value))!r}; "
            f"without {name}, runs are trained on this machine"
        )
    if (reason := _refusal(host.strip("[]"), int(port))) is not None:
        raise PlacementError(f"{value}: no Ray cluster answers at the address in {name} ({reason})")
    os.environ[VARIABLE] = value


def is_elsewhere() -> bool:
    """Return True if the launch joins an existing cluster instead of starting one."""
    return os.environ.get(VARIABLE, "") not in _HERE


def close_environment(environment: MutableMapping[str, str]) -> None:
    """Remove and set RAY_ variables so that other users cannot use a Ray cluster of this process.

    The cluster listens on this machine only and requires a random token.
    """
    for name in [name for name in environment if name.upper().startswith("RAY_")]:
        form = next((form for begin, form in _KEPT.items() if name.startswith(begin)), None)
        if form is None or not re.fullmatch(form, environment[name]):
            del environment[name]
    environment.update(_CLOSED, RAY_AUTH_TOKEN=secrets.token_hex(32))
    set_tune_variables(environment)


def set_tune_variables(environment: MutableMapping[str, str]) -> None:
    """Set the variables of Ray Tune, and remove all others, which could end the launch."""
    for name in [name for name in environment if name.startswith(_OF_TUNE)]:
        del environment[name]
    environment.update(_TUNE)


def _refusal(host: str, port: int) -> str | None:
    """Return the reason why no Ray head can be at an address; None if one may be there."""
    answers: list[str | None] = []

    def look() -> None:
        try:
            answers.append(_answer(host, port))
        except (OSError, ValueError) as error:
            answers.append(str(error) or type(error).__name__)

    looking = threading.Thread(target=look, name="address", daemon=True)
    looking.start()
    looking.join(_PATIENCE)
    return answers[0] if answers else f"no answer within {_PATIENCE:.0f} s"


def _answer(host: str, port: int) -> str | None:
    with socket.create_connection((host, port), timeout=_PATIENCE) as connection:
        if os.environ.get("RAY_USE_TLS", "0") != "0":
            return None
        connection.sendall(_PREFACE)
        with connection.makefile("rb") as answers:
            head = answers.read(_FRAME.size)
    is_grpc = len(head) == _FRAME.size and _FRAME.unpack(head)[1] == _SETTINGS
    return None if is_grpc else "the server at this address does not speak gRPC"


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
    """Watches the control process (GCS) of a Ray cluster in a thread, and its own raylet.

    After the GCS has died, Ray waits for a minute and then ends the process from C++ at any point.
    This class instead interrupts the main thread as Ctrl-C does, or ends the process if that waits.
    """

    def __init__(self, address: str, *, is_own: bool, silence: float = _SILENCE) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        processes = _needed(filter(lives, children()))
        self._own = dict.fromkeys(_OWN) | processes if is_own else {}
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
    """Watch the Ray processes which the block starts.

    Without it, Ray waits a minute for its GCS, or ends this process from C++ if its raylet has
    died.
    """
    earlier = frozenset(children())  # includes those of a failed start
    processes: dict[str, psutil.Process] = {}

    def lost() -> str | None:
        if len(processes) < len(_OWN):
            processes.update(_needed(children() - earlier))
        ended = _ended_of(processes)
        return ended and not_started(ended, folder)

    return interrupted_if_lost(lost, HeadLostError, every=_LOOK_EVERY_STARTING)


def joining(address: str) -> AbstractContextManager[None]:
    give_up_at = time.monotonic() + _JOINS_WITHIN

    def lost() -> str | None:
        is_late = time.monotonic() > give_up_at
        message = f"{address}: Ray could not join this cluster within {_JOINS_WITHIN:.0f} s"
        return f"{message}; run the same command again to retry" if is_late else None

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
    by_name = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.name() in _OWN:
                by_name[process.name()] = process
    return by_name


def _ended_of(processes: Mapping[str, psutil.Process | None]) -> str | None:
    """Return the name of a process that has ended; None if all are alive."""
    for name, process in processes.items():
        if process is None:
            return f"Ray's process {name} has ended"
        if not lives(process):
            return f"Ray's process {name} (pid {process.pid}) has ended"
    return None
