import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sweeps.machine import watchdog
from sweeps.machine.signals import INTERRUPTED, hear
from sweeps.running.head import Head, HeadLostError

NOWHERE = "127.0.0.1:9"
LOOK_EVERY, GRACE = 1.0, 2.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the watchdog from ending these tests on a busy machine."""
    hear()
    monkeypatch.setattr(watchdog, "_PATIENCE_WITH_LOSSES", 120.0)


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


@pytest.mark.parametrize("name", ["gcs_server", "raylet"])
def test_a_launch_fails_when_an_essential_process_of_its_cluster_ends(
    processes: dict[str, "subprocess.Popen[bytes]"], name: str
) -> None:
    watched = Head(NOWHERE, is_own=True)
    goes_on: list[bool] = []

    def launch() -> None:
        with watched.watched():
            processes["log_monitor"].kill()
            time.sleep(GRACE + 2 * LOOK_EVERY)
            goes_on.append(True)
            processes[name].kill()
            time.sleep(30)

    with pytest.raises(HeadLostError) as raised:
        launch()
    assert goes_on, "the cluster lives without it"
    assert f"Ray's process {name} (pid {processes[name].pid}) has ended" in str(raised.value)
    assert "run the same command again to continue" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_head_that_ended_before_the_first_check_is_reported(
    processes: dict[str, "subprocess.Popen[bytes]"],
) -> None:
    processes["gcs_server"].kill()
    processes["gcs_server"].wait()
    watched = Head(NOWHERE, is_own=True)
    with (
        pytest.raises(HeadLostError, match="Ray's process gcs_server has ended"),
        watched.watched(),
    ):
        time.sleep(30)


def test_a_remote_cluster_may_be_silent_for_a_moment() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    watched = Head(f"127.0.0.1:{port}", is_own=False, silence=4.0)
    goes_on: list[bool] = []

    def launch() -> None:
        with watched.watched():
            server.close()
            time.sleep(1.5)
            with socket.create_server(("127.0.0.1", port)):
                time.sleep(2 * GRACE)
            goes_on.append(True)
            time.sleep(30)

    with pytest.raises(HeadLostError, match=f"127.0.0.1:{port} has not answered for"):
        launch()
    assert goes_on


def test_other_errors_of_a_launch_are_raised_unchanged() -> None:
    watched = Head(NOWHERE, is_own=True)
    with watched.watched():
        pass
    with pytest.raises(ZeroDivisionError), watched.watched():
        raise ZeroDivisionError


def test_an_interrupt_that_ends_the_cluster_is_raised_as_an_interrupt(
    processes: dict[str, "subprocess.Popen[bytes]"],
) -> None:
    watched = Head(NOWHERE, is_own=True)

    def launch() -> None:
        with watched.watched():
            processes["gcs_server"].kill()
            time.sleep(LOOK_EVERY + GRACE / 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch()


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


DEAF = """
import signal, subprocess, sys, time
from pathlib import Path
from sweeps.machine import watchdog
from sweeps.machine.signals import hear
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.running import head
hear()
watchdog._PATIENCE_WITH_LOSSES = 1.0
child = subprocess.Popen([sys.argv[1], "60"])
other = subprocess.Popen([sys.argv[2], "60"])
watched = head.Head("127.0.0.1:9", is_own=True)
signal.signal(signal.SIGINT, lambda number, frame: None)
print(other.pid, flush=True)
with cleaned_by_force(lambda: print("left in order", flush=True)), watched.watched():
    child.kill()
    while True:
        time.sleep(1)
"""


def test_a_process_that_ignores_interrupts_is_ended_with_its_children(tmp_path: Path) -> None:
    names = [
        shutil.copy(shutil.which("sleep") or "", tmp_path / n) for n in ("raylet", "gcs_server")
    ]
    done = subprocess.run(
        [sys.executable, "-c", DEAF, *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    pid, left = done.stdout.split("\n", 1)
    assert (done.returncode, left) == (1, "left in order\n")
    assert done.stderr.startswith("the Ray cluster has died: Ray's process raylet ")
    give_up_at = time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)  # what is killed ends a moment later


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


STARTING = """
import signal, subprocess, sys, time
from pathlib import Path
from sweeps.machine.watchdog import cleaned_by_force
from sweeps.machine.signals import hear
from sweeps.machine import watchdog
from sweeps.running import head
hear()
watchdog._PATIENCE_WITH_LOSSES = 1.0
program, is_deaf, comes_before = sys.argv[1], sys.argv[2] == "deaf", sys.argv[3] == "before"
if is_deaf:
    signal.signal(signal.SIGINT, lambda number, frame: None)
child = subprocess.Popen([program, "60"]) if comes_before else None
try:
    leave = lambda: print("left in order", flush=True)
    with cleaned_by_force(leave), head.starting(Path("/nowhere")):
        child = child or subprocess.Popen([program, "60"])
        time.sleep(0 if sys.argv[3] == "and goes at once" else 2)
        child.kill()
        until = time.monotonic() + float(sys.argv[4])
        while time.monotonic() < until:
            time.sleep(0.1)
except head.HeadLostError as lost:
    print(lost)
print("alive", flush=True)
"""
LOST = "Ray did not start on this machine (Ray's process {} (pid "


@pytest.mark.parametrize(
    ("name", "hears", "comes", "waits", "told", "cried"),
    [
        ("gcs_server", "hears", "within", 30, LOST, ""),
        ("raylet", "hears", "and goes at once", 30, LOST, ""),
        ("raylet", "deaf", "within", 30, "left in order\n", LOST),
        ("raylet", "hears", "within", 0, "alive\n", ""),
        ("raylet", "hears", "before", 5, "alive\n", ""),
    ],
)
def test_a_start_fails_when_gcs_or_raylet_ends(
    tmp_path: Path, name: str, hears: str, comes: str, waits: float, told: str, cried: str
) -> None:
    program = shutil.copy(shutil.which("sleep") or "", tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", STARTING, program, hears, comes, str(waits)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith(told.format(name)), done
    assert done.stdout.endswith("alive\n") == (hears == "hears")
    assert done.stderr.startswith(cried.format(name))
    assert bool(done.stderr) == bool(cried)
