"""Scratch folder of a driver: short enough for Ray; only processes known as ours are ended."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sweeps.machine import scratch as module
from sweeps.machine.scratch import clear_scratch, end_orphans, members, recorded_members, scratch
from tests.sweeps.machine.left import left_by_a_dead_process


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
    writer = started(f"while :; do mkdir -p {place}/mixsweep-*~/ray/$((n += 1)); done")
    folder = left_by_a_dead_process(place, members=[writer.pid])
    with scratch():
        assert not folder.exists()
        writer.wait(timeout=10)


ORPHANED = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]])"
"""A process that starts another and ends at once."""
AGAIN = "import os, sys\nwhile True: os.makedirs(sys.argv[1], exist_ok=True)"


def test_a_process_with_a_dead_parent_ends_with_its_launch(place: Path) -> None:
    before = psutil.Process().children()
    with scratch() as folder:
        subprocess.run([sys.executable, "-c", ORPHANED, AGAIN, f"{folder}/ray"], check=True)
    assert list(place.iterdir()) == []
    assert set(psutil.Process().children()) <= {*before}


def test_an_unrecorded_worker_is_ended_if_it_was_started_in_the_scratch_folder(
    place: Path,
) -> None:
    folder = left_by_a_dead_process(place)
    starts = {
        "worker": (folder, f"--temp-dir={folder}/ray"),
        "shell in it": (folder, "ray"),
        "reader of it": (place, f"{folder}/ray"),
        "in a part of it": (folder / "ray", f"{folder}/ray"),
    }
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    processes = {
        name: subprocess.Popen([*sleep, argument], cwd=where)
        for name, (where, argument) in starts.items()
    }
    try:
        clear_scratch()
        processes["worker"].wait(timeout=10)
        assert [name for name, each in processes.items() if each.poll() is None] == [
            "shell in it", "reader of it", "in a part of it",
        ]  # fmt: skip
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    assert list(place.iterdir()) == []


def test_only_processes_of_the_launch_end_with_the_launch(
    place: Path, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    before = started()
    with scratch():
        own = started()
        end_orphans()
        assert own.poll() is None
    own.wait(timeout=10)
    assert before.poll() is None


def test_a_process_is_not_ended_for_its_environment_or_its_name(
    place: Path, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    (place / "mixsweep-paper").mkdir()
    (place / "mixsweep-paper" / "lock").touch()
    strangers = [
        started(MIXSWEEP_SCRATCH=str(place / name))
        for name in ("gone", "mixsweep-paper", "mixsweep-1-aaaa~")
    ]
    titled = subprocess.Popen(["sleep", "60"], executable="/bin/sleep")
    with scratch() as folder, (folder / "held").open("w") as held:
        reader = subprocess.Popen(["sleep", "60"], stdout=held)
    try:
        reader.wait(timeout=10)  # this launch has started it
        left_by_a_dead_process(place, members=[])
        with scratch():
            pass
        assert [process.poll() for process in (*strangers, titled)] == [None] * 4
    finally:
        titled.kill()
        titled.wait()


def test_a_running_launch_without_its_lock_file_is_not_ended(place: Path) -> None:
    code = """
import subprocess, time
from sweeps.machine.scratch import scratch
with scratch() as folder:
    child = subprocess.Popen(["sleep", "60"])
    while not (folder / "processes").exists():
        time.sleep(0.02)
    print(folder, flush=True)
    child.wait()
"""
    launch = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert launch.stdout is not None
        folder = Path(launch.stdout.readline().strip())
        (folder / "lock").unlink()
        with scratch():
            pass
        clear_scratch()
        assert launch.poll() is None
        assert (folder / "processes").exists()
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


NESTED = "import subprocess, sys; subprocess.run(['sleep', '60'])"


def waited_for(found: Callable[[], int], number: int) -> None:
    give_up_at = time.monotonic() + 8
    while found() != number and time.monotonic() < give_up_at:
        time.sleep(0.02)
    assert found() == number


@pytest.mark.parametrize("proc", ["/proc/self", "/missing"], ids=["linux", "without-proc"])
def test_only_processes_started_below_a_launch_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proc: str
) -> None:
    monkeypatch.setattr(module, "_PROC", Path(proc))
    earlier = subprocess.Popen(["sleep", "60"])
    with recorded_members(tmp_path):
        parent = subprocess.Popen([sys.executable, "-c", NESTED])
        waited_for(lambda: len(list(members(tmp_path))), 2)
    below = psutil.Process(parent.pid).children()
    try:
        assert {process.pid for process in members(tmp_path)} == {parent.pid, below[0].pid}
        parent.kill()
        parent.wait()
        assert {process.pid for process in members(tmp_path)} == {below[0].pid}
    finally:
        for process in (earlier, *below):
            process.kill()
        earlier.wait()


@pytest.mark.parametrize("part", range(4), ids=["pid", "start", "boot", "namespace"])
def test_a_record_that_differs_in_any_part_names_no_process(tmp_path: Path, part: int) -> None:
    with recorded_members(tmp_path):
        child = subprocess.Popen(["sleep", "60"])
    file = tmp_path / "processes"
    try:
        words = file.read_text().split()
        assert [process.pid for process in members(tmp_path)] == [child.pid]
        words[part] = str(int(words[part]) + 1) if words[part].isdecimal() else f"x{words[part]}"
        file.write_text(" ".join(words) + "\n")
        assert list(members(tmp_path)) == []
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"1", b"x y\n", b"9" * 4000, b"-1 2 3 4\n"])
def test_a_damaged_record_names_no_process(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "processes").write_bytes(content)
    assert list(members(tmp_path)) == []
