"""Cluster address: checks, before Ray is imported, which Ray cluster a launch joins, if any."""

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
    # The metrics are not used, and their server requires no token.
    "RAY_enable_metrics_collection": "0",
    # If the GCS dies before it has a port, Ray blocks every thread of this process for this time.
    "RAY_gcs_server_port_wait_time_s": "10",
}
_KEPT = ("RAY_memory_", "RAY_worker_niceness", "RAY_EXPERIMENTAL_NOSET_", "RAY_ACCEL_ENV_VAR_")
"""Prefixes of RAY_ variables that a cluster started by us still reads: memory, devices, CPU
priority. All other RAY_ variables are removed, because they may open a port, load code or name
another cluster."""
_FORMS = {
    "RAY_memory_usage_threshold": re.compile(r"[01]|0?\.\d{1,18}|1\.0+"),
    "RAY_memory_": re.compile(r"-?\d{1,18}"),
    "RAY_worker_niceness": re.compile(r"-?\d{1,18}"),
}
"""Pattern of the valid values, by prefix of the variable, the longest prefix first. With an invalid
value, Ray's processes or this one would end without a message."""
_SWITCH = re.compile(r"-?\d{1,18}|true|false")
"""Pattern of the valid values of all other kept variables."""


_TUNE = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    # Tune's snapshots of all trials are never read, and grow with every run.
    "TUNE_GLOBAL_CHECKPOINT_S": "inf",
}
"""Environment variables of Ray Tune that every launch sets."""
_OF_TUNE = ("TUNE_", "RAY_TUNE_", "RAY_AIR_", "RAY_TRAIN_")
"""Prefixes of the environment variables that Ray Tune reads in the driver."""


def choose_cluster(address: str | None) -> None:
    """Set RAY_ADDRESS to the Ray cluster to join; unset it to start a cluster on this machine."""
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
            f"without {name}, runs are trained on this machine"
        )
    if (reason := _refusal(host.strip("[]"), int(port))) is not None:
        raise PlacementError(f"{given}: no Ray cluster answers at the address in {name} ({reason})")
    os.environ[VARIABLE] = given


def is_elsewhere() -> bool:
    """Return True if the launch joins an existing cluster instead of starting one."""
    return os.environ.get(VARIABLE, "") not in _HERE


def close_environment(environment: MutableMapping[str, str]) -> None:
    """Change RAY_ variables so that other users cannot use a Ray cluster that this process starts.

    The cluster then listens on this machine only and requires a random token. Other RAY_ variables
    are removed, except valid ones for memory, devices and CPU priority. Ray Tune's are set, too.
    """
    for name in [name for name in environment if name.upper().startswith("RAY_")]:
        form = next((f for begin, f in _FORMS.items() if name.startswith(begin)), _SWITCH)
        if not (name.startswith(_KEPT) and form.fullmatch(environment[name])):
            del environment[name]
    environment.update(_CLOSED, RAY_AUTH_TOKEN=secrets.token_hex(32))
    set_tune_variables(environment)


def set_tune_variables(environment: MutableMapping[str, str]) -> None:
    """Set the variables of Ray Tune, and remove all others that it reads in this process.

    Some values would end the launch with an error, and others would replace our interrupt handler.
    """
    for name in [name for name in environment if name.startswith(_OF_TUNE)]:
        del environment[name]
    environment.update(_TUNE)


def _refusal(host: str, port: int) -> str | None:
    """Return the reason why no Ray head can be at an address; None if one may be there."""
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
    return None if is_grpc else "the server at this address does not speak gRPC"
