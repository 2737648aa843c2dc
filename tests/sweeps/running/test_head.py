import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeps.machine import watchdog
from sweeps.machine.signals import INTERRUPTED, hear
from sweeps.running import head
from sweeps.running.head import Head, HeadLostError

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
    threading.Timer(1.0, interrupt_all).start()
    lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
    lock(mutex)
    lock(mutex)  # for ever, and no handler is called meanwhile
"""


@pytest.mark.parametrize("interrupted", ["all", "this one"])
def test_an_interrupt_while_ray_waits_ends_the_process_with_the_exit_code(
    tmp_path: Path, interrupted: str
) -> None:
    program = shutil.copy(shutil.which("sleep") or "", tmp_path / "raylet")
    done = subprocess.run(
        [sys.executable, "-c", WITHIN_RAY, program, interrupted],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (INTERRUPTED, "left in order\n")
    assert done.stderr.startswith("interrupted; ")
