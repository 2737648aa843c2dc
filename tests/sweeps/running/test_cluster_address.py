"""Cluster address: no cluster is joined by accident; wrong addresses are refused in one line."""

import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sweeps.running import cluster_address as module
from sweeps.running.cluster_address import (
    choose_cluster,
    close_environment,
    is_elsewhere,
)
from sweeps.running.placement import PlacementError

_HEAD = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Beginning of an answer of a gRPC server."""


@contextmanager
def listening(
    answer: bytes | None,
    family: socket.AddressFamily = socket.AF_INET,
    reached: threading.Event | None = None,
) -> Iterator[str]:
    """Yield the address of a server with one fixed answer.

    Args:
        answer: Sent to every client once it has sent something; None: the server never answers.
        family: IPv4 or IPv6.
        reached: Set when a client has sent something.
    """
    is_over = threading.Event()

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1024)
            if reached is not None:
                reached.set()
            if answer is None:
                is_over.wait()
            else:
                self.request.sendall(answer)

    class Server(socketserver.ThreadingTCPServer):
        address_family = family

    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with Server((host, 0), Answer) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            shown = host if family == socket.AF_INET else f"[{host}]"
            yield f"{shown}:{server.server_address[1]}"
        finally:
            is_over.set()
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("value", [None, "", " ", "local", " local "])
def test_an_address_variable_without_a_cluster_is_unset(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if value is not None:
        monkeypatch.setenv("RAY_ADDRESS", value)
    choose_cluster(None)
    assert "RAY_ADDRESS" not in os.environ
    assert not is_elsewhere()


JUNK = [
    "auto", "cluster", "localhost", ":6379", "host:", "host:0", "host:65536", "host:-1", "host:x",
    "host:99999999999999999999", "ray://host:10001", "http://host:8265", "a b:6379", "host:6379/",
    "host:\u0663\u0663", "h\x1b[31m:6379", "u:p@host:6379", "?:1", "#:1",
]  # fmt: skip


@pytest.mark.parametrize("is_option", [True, False])
@pytest.mark.parametrize("value", JUNK)
def test_an_invalid_address_is_refused_in_one_line(
    value: str, is_option: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "" if is_option else value)
    name = "--address" if is_option else "RAY_ADDRESS"
    with pytest.raises(PlacementError, match=f"^{name} must be HOST:PORT") as refused:
        choose_cluster(value if is_option else None)
    assert str(refused.value).isprintable()
    assert "u:p" not in str(refused.value)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_server_that_answers_in_grpc_is_accepted_as_a_cluster(
    family: socket.AddressFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "")
    with listening(_HEAD, family) as address:
        choose_cluster(address)
    assert os.environ["RAY_ADDRESS"] == address
    assert is_elsewhere()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(9), _HEAD[:5]])
def test_a_server_that_does_not_answer_in_grpc_is_refused(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(answer) as address:
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(PlacementError, match=f"^{address}: no Ray cluster answers"):
            choose_cluster(None)


def test_an_address_that_never_answers_is_refused_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with listening(None) as address, pytest.raises(PlacementError, match=r"timed out|no answer"):
        choose_cluster(address)


def test_an_own_cluster_ignores_environment_settings_that_weaken_security() -> None:
    environment = {
        "PATH": "/bin",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_AUTH_TOKEN": "known",
        "RAY_AUTH_TOKEN_PATH": "/tmp/known",
        "RAY_REDIS_ADDRESS": "10.0.0.1:6379",
        "RAY_RUNTIME_ENV_HOOK": "os.system",
        "RAY_NODE_IP_ADDRESS": "0.0.0.0",
        "ray_enable_metrics_collection": "1",
        "RAY_memory_usage_threshold": "0.9",
        "RAY_worker_niceness": "0",
        "RAY_memory_monitor_refresh_ms": "true",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "true",
    }
    close_environment(environment)
    token = environment.pop("RAY_AUTH_TOKEN")
    assert len(token) == 64
    assert (
        environment
        == {
            "PATH": "/bin",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_enable_metrics_collection": "0",
            "RAY_gcs_server_port_wait_time_s": "10",
            "RAY_memory_usage_threshold": "0.9",
            "RAY_worker_niceness": "0",
            "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "true",
        }
        | module._TUNE
    )
