"""Scratch folder of a driver: short enough for Ray; only processes known as ours are ended."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sweeps.machine.scratch import MARK, clear_scratch, end_orphans, environment, marked, scratch
from tests.interpreters import run_python, start_python

_LAUNCH = """
import os, sys
from pathlib import Path
from mixup_core.temporary import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "ray").mkdir()
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""


def left_by_a_dead_process(place: Path) -> Path:
    """Return the scratch folder, below `place`, of a launch that was killed."""
    return Path(run_python(_LAUNCH, place).stdout.strip())


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.fixture
def started() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start child processes, which other launches may have recorded."""
    processes = []

    def start(does: str = "sleep 60", **variables: str) -> "subprocess.Popen[bytes]":
        command = ["sh", "-c", does]
        processes.append(subprocess.Popen(command, env={**os.environ, **variables}))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_processes_of_a_killed_launch_are_ended_before_its_folder_is_removed(
    place: Path, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    folder = left_by_a_dead_process(place)
    write = f"while :; do mkdir -p {place}/mixsweep-*~/ray/$((n += 1)); done"
    writer = started(write, **{MARK: str(folder)})
    with scratch():
        assert not folder.exists()
        writer.wait(timeout=10)


ORPHANED = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]])"
"""A process that starts another and ends at once."""
AGAIN = "import os, sys\nwhile True: os.makedirs(sys.argv[1], exist_ok=True)"


def test_a_process_with_a_dead_parent_ends_with_its_launch(place: Path) -> None:
    before = psutil.Process().children()
    with scratch() as folder, environment(marked(folder)):
        subprocess.run([sys.executable, "-c", ORPHANED, AGAIN, f"{folder}/ray"], check=True)
    assert list(place.iterdir()) == []
    assert set(psutil.Process().children()) <= {*before}


def test_only_processes_of_the_launch_end_with_the_launch(
    place: Path, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    with scratch() as folder:
        other, own = started(), started(**marked(folder))
        end_orphans()
        assert own.poll() is None
    own.wait(timeout=10)
    assert other.poll() is None


def test_a_process_that_names_no_dead_launch_is_not_ended(
    place: Path, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    (place / "mixsweep-paper").mkdir()
    (place / "mixsweep-paper" / "lock").touch()
    left = left_by_a_dead_process(place)
    strangers = [
        started(**{MARK: str(place / name)})
        for name in ("gone", "mixsweep-paper", "mixsweep-1-aaaa~", f"{left.name}/ray")
    ]
    reader = subprocess.Popen(["sh", "-c", f"sleep 60 # {left}"], cwd=left)
    with scratch():
        pass
    try:
        assert [process.poll() for process in (*strangers, reader)] == [None] * 5
    finally:
        reader.kill()
        reader.wait()


def test_a_running_launch_without_its_lock_file_is_not_ended(place: Path) -> None:
    code = """
import subprocess
from sweeps.machine.scratch import scratch
with scratch() as folder:
    child = subprocess.Popen(["sleep", "60"])
    print(folder, flush=True)
    child.wait()
"""
    there = {**os.environ, "TMPDIR": str(place)}
    launch = start_python(code, env=there, start_new_session=True)
    try:
        folder = Path(launch.stdout.readline().strip())
        (folder / "lock").unlink()
        with scratch():
            pass
        clear_scratch()
        assert launch.poll() is None
        assert folder.exists()
    finally:
        os.killpg(launch.pid, signal.SIGKILL)  # its child holds the pipe open
        launch.communicate()


@pytest.mark.parametrize("length", [4, 17, 18, 90])
def test_the_scratch_path_leaves_room_for_the_longest_socket_of_ray(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        base = Path(root[:4] if length == 4 else (root + "/" + "x" * 90)[:length])
        if length != 4:
            base.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(base))
        with scratch() as folder:
            assert folder.parent == (base if length <= 17 else Path("/tmp"))
            sockets = folder / "ray" / "session_2026-11-21_22-01-02_123456_4194304" / "sockets"
            sockets.mkdir(parents=True)
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(sockets / "plasma_store"))


def test_only_processes_started_inside_the_block_get_its_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seen() -> bytes:
        return subprocess.check_output(["sh", "-c", "echo $KNOWN $UNKNOWN"])

    monkeypatch.setenv("KNOWN", "4")
    monkeypatch.delenv("UNKNOWN", raising=False)
    with environment({"KNOWN": "1", "UNKNOWN": "2"}):
        assert seen() == b"1 2\n"
    assert seen() == b"4\n"
    assert "UNKNOWN" not in os.environ
