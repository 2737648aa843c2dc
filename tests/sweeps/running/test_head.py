"""Head: no cluster is joined by accident; wrong addresses are refused in one line."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweeps.machine import watchdog
from sweeps.machine.signals import INTERRUPTED, hear
from sweeps.running import head
from sweeps.running.head import (
    Head,
    HeadLostError,
    choose_cluster,
    close_environment,
    is_elsewhere,
)
from sweeps.running.placement import PlacementError
from tests.interpreters import run_python

_HEAD = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Beginning of an answer of a gRPC server."""


@contextmanager
def listening(answer: bytes | None, host: str = "127.0.0.1") -> Iterator[str]:
    """Yield the address of a server that gives one answer, or never answers."""

    def serve() -> None:
        client, _ = server.accept()
        with client:
            client.recv(1024)
            client.sendall(answer or b"")
            if answer is None:
                client.recv(1)  # until the client gives up

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host.strip("[]"), 0), family=family) as server:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield f"{host}:{server.getsockname()[1]}"
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


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_server_that_answers_in_grpc_is_accepted_as_a_cluster(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "")
    with listening(_HEAD, host) as address:
        choose_cluster(address)
    assert os.environ["RAY_ADDRESS"] == address
    assert is_elsewhere()


@pytest.mark.parametrize(
    "answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(9), _HEAD[:5]]
)
def test_a_server_that_does_not_answer_in_grpc_or_not_at_all_is_refused(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "_PATIENCE", 0.5 if answer is None else 5.0)
    with listening(answer) as address:
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(PlacementError, match=f"^{address}: no Ray cluster answers"):
            choose_cluster(None)


def test_an_own_cluster_ignores_environment_settings_that_weaken_security() -> None:
    kept = {
        "PATH": "/bin",
        "RAY_memory_usage_threshold": "0.9",
        "RAY_worker_niceness": "0",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "true",
    }
    environment = kept | {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_AUTH_TOKEN": "known",
        "RAY_AUTH_TOKEN_PATH": "/tmp/known",
        "RAY_REDIS_ADDRESS": "10.0.0.1:6379",
        "RAY_RUNTIME_ENV_HOOK": "os.system",
        "RAY_NODE_IP_ADDRESS": "0.0.0.0",
        "ray_enable_metrics_collection": "1",
        "RAY_memory_monitor_refresh_ms": "true",
    }
    close_environment(environment)
    assert len(environment.pop("RAY_AUTH_TOKEN")) == 64
    assert environment == kept | head._CLOSED | head._TUNE


NOWHERE = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the watchdog from ending these tests on a busy machine."""
    hear()
    monkeypatch.setattr(watchdog, "_PATIENCE_WITH_LOSSES", 120.0)
    monkeypatch.setattr(head, "_LOOK_EVERY", 0.2)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """Child processes with the names of Ray's processes."""
    started = {}
    for name in ("gcs_server", "raylet", "log_monitor"):
        program = shutil.copy(shutil.which("sleep") or "", tmp_path / name)
        started[name] = subprocess.Popen([program, "60"])
    yield started
    for process in started.values():
        process.kill()
        process.wait()


def test_a_launch_fails_when_an_essential_process_of_its_cluster_ends(
    processes: dict[str, "subprocess.Popen[bytes]"],
) -> None:
    watched = Head(NOWHERE, is_own=True)
    goes_on: list[bool] = []

    def launch() -> None:
        with watched.watched():
            processes["log_monitor"].kill()
            time.sleep(1)
            goes_on.append(True)
            processes["raylet"].kill()
            time.sleep(30)

    with pytest.raises(HeadLostError) as raised:
        launch()
    assert goes_on, "the cluster lives without it"
    assert f"Ray's process raylet (pid {processes['raylet'].pid}) has ended" in str(raised.value)
    assert "run the same command again to continue" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_remote_cluster_may_be_silent_for_a_moment() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    watched = Head(f"127.0.0.1:{port}", is_own=False, silence=2.0)
    goes_on: list[bool] = []

    def launch() -> None:
        with watched.watched():
            server.close()
            time.sleep(0.5)
            with socket.create_server(("127.0.0.1", port)):
                time.sleep(2.5)
            goes_on.append(True)
            time.sleep(30)

    with pytest.raises(HeadLostError, match=f"127.0.0.1:{port} has not answered for"):
        launch()
    assert goes_on


@pytest.mark.parametrize("follows", [None, RuntimeError("Ray did not come up"), SystemExit(15)])
def test_an_interrupt_that_a_library_swallows_is_raised_afterwards(
    follows: BaseException | None,
) -> None:
    def launch() -> None:
        with Head(NOWHERE, is_own=True).watched():
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            if follows is not None:
                raise follows

    with pytest.raises(KeyboardInterrupt) as raised:
        launch()
    assert raised.value.__cause__ is follows


WITHIN_RAY = """
import ctypes, os, signal, subprocess, sys, threading
from pathlib import Path
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.running import head
from sweeps.machine.signals import hear
hear()

def interrupt_all():
    if sys.argv[2] == "all":
        raylet.kill()
    os.kill(os.getpid(), signal.SIGHUP)

with cleaned_by_force(lambda: print("left in order", flush=True)), head.starting(Path("/nowhere")):
    raylet = subprocess.Popen([sys.argv[1], "60"])
    lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
    lock(mutex)
    now = threading.Event()
    threading.Thread(target=lambda: (now.wait(), interrupt_all())).start()
    sys.setswitchinterval(60)  # the other thread goes on when this one waits, not before
    now.set()
    lock(mutex)  # for ever, and no handler is called meanwhile
"""


@pytest.mark.parametrize("interrupted", ["all", "this one"])
def test_an_interrupt_while_ray_waits_ends_the_process_with_the_exit_code(
    tmp_path: Path, interrupted: str
) -> None:
    program = shutil.copy(shutil.which("sleep") or "", tmp_path / "raylet")
    done = run_python(WITHIN_RAY, program, interrupted, timeout=60)
    assert (done.returncode, done.stdout) == (INTERRUPTED, "left in order\n")
    assert done.stderr.startswith("interrupted; ")
