"""Scratch of a driver: its path is short enough for Ray."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mixup_core.temporary import PREFIX, temporary_folder
from sweeps.machine.scratch import MARK, clear_scratch, end_orphans, scratch


@pytest.fixture
def started() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Processes that are started for a launch; without one, for none."""
    processes = []

    def start(folder: Path | None, does: str = "") -> "subprocess.Popen[bytes]":
        marked = {} if folder is None else {MARK: str(folder)}
        # A shell that becomes another program has no environment to be seen for a moment.
        command = ["sh", "-c", does] if does else ["sleep", "60"]
        processes.append(subprocess.Popen(command, env={**os.environ, **marked}))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_what_killed_launches_have_left_running_is_ended_and_nothing_else(
    tmp_path: Path, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    (tmp_path / "written").mkdir()
    (tmp_path / "written" / "lock").touch()
    with temporary_folder(tmp_path) as alive:
        folders = (tmp_path / "gone", tmp_path / "written", alive, None)
        gone, written, living, other = map(started, folders)
        with scratch() as folder:
            gone.wait(timeout=10)
            written.wait(timeout=10)
            own = started(folder)
            end_orphans()
            assert own.poll() is None
        own.wait(timeout=10)
        assert living.poll() is None
        assert other.poll() is None


def test_they_are_dead_before_their_folder_is_removed(
    monkeypatch: pytest.MonkeyPatch, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        folder = Path(place) / f"{PREFIX}1-0000~"
        folder.mkdir()
        (folder / "lock").touch()
        writer = started(folder, "while :; do mkdir -p $MIXSWEEP_SCRATCH/ray/$((n += 1)); done")
        with scratch():
            assert not folder.exists()
        writer.wait(timeout=10)


def test_what_a_killed_launch_left_is_cleared_where_nothing_is_left_to_train(
    monkeypatch: pytest.MonkeyPatch, started: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        folder = Path(place) / f"{PREFIX}1-0000~"
        folder.mkdir()
        (folder / "lock").touch()
        left = started(folder)
        clear_scratch()
        left.wait(timeout=10)
        assert list(Path(place).iterdir()) == []


TITLED = """
import ctypes, pathlib, sys, time
log = pathlib.Path(sys.argv[1]) / "ray" / "session_1" / "logs" / "agent.out"
log.parent.mkdir(parents=True)
with log.open("w"):
    ctypes.CDLL(None).prctl(15, sys.argv[2].encode())
    print("begun", flush=True)
    time.sleep(60)
"""
"""Has a log of a launch open and gives itself a name, as the agents of Ray do."""


def test_agents_that_have_overwritten_what_marks_them_are_known_by_their_logs(
    tmp_path: Path,
) -> None:
    def started(folder: Path, title: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", TITLED, str(folder), title]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        return process

    left = tmp_path / f"{PREFIX}1-0000~"
    with temporary_folder(tmp_path) as alive, scratch() as own:
        agents = {
            "of the dead": started(left, "ray::DashboardAgent"),
            "of the living": started(alive, "ray::DashboardAgent"),
            "of this launch": started(own, "ray::DashboardAgent"),
            "reads a log": started(tmp_path / f"{PREFIX}1-0001~", "tail"),
            "elsewhere": started(tmp_path / "cluster", "ray::DashboardAgent"),
        }
        shutil.rmtree(left)
        try:
            end_orphans()
            assert [name for name, agent in agents.items() if agent.poll() is not None] == [
                "of the dead"
            ]
            end_orphans(own)
            agents["of this launch"].wait(timeout=10)
            assert agents["of the living"].poll() is None
        finally:
            for agent in agents.values():
                agent.kill()
                agent.communicate()


@pytest.mark.parametrize("length", [4, 17, 18, 90])
def test_its_path_leaves_room_for_the_longest_socket_of_ray(
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
