"""Members: processes of a launch are identified by pid and start time."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sweeps.machine import members as module
from sweeps.machine.members import members, recorded_members

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
