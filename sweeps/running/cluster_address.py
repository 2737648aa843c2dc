"""Cluster address: which Ray cluster a launch joins, if any. Read and checked before Ray loads."""

import os
import re
import secrets
import socket
import struct
import threading
from collections.abc import MutableMapping

from mixup_core.addresses import web_address
from sweeps.running.placement import PlacementError

VARIABLE = "RAY_ADDRESS"
_HERE = {"", "local"}
"""Values of the variable that name no cluster. Ray itself starts one that is open to all then."""
_PATIENCE = 5.0
"""Seconds in which an address is checked."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""First bytes of a gRPC client: the preface of HTTP/2 and settings, none of them set."""
_SETTINGS, _FRAME = 4, struct.Struct(">3sBB4s")
"""Type of the frame that a gRPC server answers with, and the head of a frame."""
_LARGEST_PORT = 65535

_CLOSED = {
    # Every port is on the loopback, and the token dies with this process.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    # Nobody reads the metrics, and what serves them asks for no token.
    "RAY_enable_metrics_collection": "0",
    # Ray waits with every thread of this process at rest for a GCS that died before it had a port.
    "RAY_gcs_server_port_wait_time_s": "10",
}
_KEPT = ("RAY_memory_", "RAY_worker_niceness", "RAY_EXPERIMENTAL_NOSET_", "RAY_ACCEL_ENV_VAR_")
"""Begin the variables that a cluster of our own takes from the environment: memory, devices, CPU
time. Any other may open a port, load code or name another cluster."""
_FORMS = {
    "RAY_memory_usage_threshold": re.compile(r"[01]|0?\.\d{1,18}|1\.0+"),
    "RAY_memory_": re.compile(r"-?\d{1,18}"),
    "RAY_worker_niceness": re.compile(r"-?\d{1,18}"),
}
"""Begin of a name to its values, the longest first; another ends Ray's processes, or this one,
without a word."""
_SWITCH = re.compile(r"-?\d{1,18}|true|false")
"""Values of the others."""


def choose_cluster(address: str | None) -> None:
    """Make the cluster to join the value of RAY_ADDRESS; without one, unset it.

    Args:
        address: HOST:PORT; None takes the value of the variable. Empty and `local` name none.

    Raises:
        PlacementError: If it is no address, or no Ray cluster answers there within seconds.
    """
    name = VARIABLE if address is None else "--address"
    given = (os.environ.get(VARIABLE, "") if address is None else address).strip()
    if address is None and given in _HERE:
        os.environ.pop(VARIABLE, None)
        return
    host, _, port = given.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= _LARGEST_PORT
    if not (host and is_port and host.isprintable()) or set(host) & set("/@?# "):
        raise PlacementError(
            f"{name} must be HOST:PORT of a Ray cluster, got {str(web_address(given))!r}; "
            f"without it, runs are trained on this machine"
        )
    if (reason := _refusal(host.strip("[]"), int(port))) is not None:
        raise PlacementError(f"{given}: no Ray cluster answers at the address in {name} ({reason})")
    os.environ[VARIABLE] = given


def is_elsewhere() -> bool:
    """Return whether a launch joins a cluster, which others may have started."""
    return os.environ.get(VARIABLE, "") not in _HERE


def close_environment(environment: MutableMapping[str, str]) -> None:
    """Let a cluster of our own listen on the loopback alone, whatever the environment says.

    Args:
        environment: Of this process, before it imports Ray.
    """
    for name in [name for name in environment if name.upper().startswith("RAY_")]:
        form = next((f for begin, f in _FORMS.items() if name.startswith(begin)), _SWITCH)
        if not (name.startswith(_KEPT) and form.fullmatch(environment[name])):
            del environment[name]
    environment.update(_CLOSED, RAY_AUTH_TOKEN=secrets.token_hex(32))


def _refusal(host: str, port: int) -> str | None:
    """Return why nothing at an address can be Ray's head; None if it may be.

    A name is looked up in another thread, which cannot be interrupted; this one can.
    """
    found: list[str | None] = []

    def look() -> None:
        try:
            found.append(_answer(host, port))
        except (OSError, ValueError) as error:
            found.append(str(error) or type(error).__name__)

    looking = threading.Thread(target=look, name="address", daemon=True)
    looking.start()
    looking.join(_PATIENCE)
    return found[0] if found else f"no answer within {_PATIENCE:.0f} s"


def _answer(host: str, port: int) -> str | None:
    with socket.create_connection((host, port), timeout=_PATIENCE) as connection:
        if os.environ.get("RAY_USE_TLS", "0") != "0":
            return None
        connection.sendall(_PREFACE)
        with connection.makefile("rb") as answers:
            head = answers.read(_FRAME.size)
    is_grpc = len(head) == _FRAME.size and _FRAME.unpack(head)[1] == _SETTINGS
    return None if is_grpc else "what listens there does not speak gRPC"
